// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// What the nine tiling functions share: operand and attribute checks with one clear message each,
// geometry, layouts, launch size. Compiled as C++11 by CANN's op project; header only, because that
// project compiles op_host/*.cpp flat.
//
// A tiling function runs straight through and asks for the status once at the end:
//   StageTiling tiling(context);
//   const Operand k = tiling.Input(0, "k");
//   ...
//   tiling.ExpectShape(w, k.dims);
//   if (!tiling.Ok()) { return ge::GRAPH_FAILED; }
// After the first failure every further check is skipped, so the message is that of the first one.
#ifndef KDA_OP_HOST_COMMON_STAGE_TILING_H
#define KDA_OP_HOST_COMMON_STAGE_TILING_H

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>

#include "base/err_msg.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

#include "layout.h"

namespace kda {

// One input or output as the tiling sees it. `present` is false for an absent OPTIONAL operand.
struct Operand {
    std::string name;
    bool present;
    ge::DataType type;
    Dims dims;

    Operand() : present(false), type(ge::DT_UNDEFINED) {}
    int64_t Dim(size_t index) const { return index < dims.size() ? dims[index] : -1; }
};

inline std::string DimsText(const Dims& dims) {
    std::string text = "[";
    for (size_t i = 0; i < dims.size(); ++i) {
        text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
    }
    return text + "]";
}

inline const char* TypeText(ge::DataType type) {
    switch (type) {
        case ge::DT_FLOAT:
            return "float32";
        case ge::DT_BF16:
            return "bfloat16";
        case ge::DT_FLOAT16:
            return "float16";
        case ge::DT_INT64:
            return "int64";
        case ge::DT_INT32:
            return "int32";
        default:
            return "another type";
    }
}

class StageTiling {
public:
    explicit StageTiling(gert::TilingContext* context) : context_(context), ok_(true) {}

    bool Ok() const { return ok_; }
    gert::TilingContext* Context() const { return context_; }

    // ------------------------------------------------------------------ messages
    __attribute__((format(printf, 2, 3))) bool Fail(const char* format, ...) {
        if (!ok_) {
            return false;
        }
        ok_ = false;
        char text[512];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        // Weak in older toolkits.
        if (ge::ReportUserDefinedErrMsg != nullptr) {
            (void)ge::ReportUserDefinedErrMsg("EU0001", "%s: %s", context_->GetNodeType(), text);
        }
        return false;
    }

    // ------------------------------------------------------------------ operands
    // irIndex: position in the op definition, absent optional inputs counted.
    Operand Input(size_t irIndex, const char* name) {
        Operand operand = OptionalInput(irIndex, name);
        if (!operand.present) {
            Fail("input %s is required, got none", name);
        }
        return operand;
    }
    Operand OptionalInput(size_t irIndex, const char* name) {
        return Describe(name, context_->GetOptionalInputShape(irIndex),
                        context_->GetOptionalInputDesc(irIndex));
    }
    Operand Output(size_t irIndex, const char* name) {
        Operand operand = OptionalOutput(irIndex, name);
        if (!operand.present) {
            Fail("output %s is required, got none", name);
        }
        return operand;
    }
    // The context counts outputs as the node has them; an absent one may or may not keep its place.
    Operand OptionalOutput(size_t irIndex, const char* name) {
        size_t index = irIndex;
        const gert::AnchorInstanceInfo* instance = context_->GetIrOutputInstanceInfo(irIndex);
        if (instance != nullptr) {
            if (instance->GetInstanceNum() == 0) {
                return Describe(name, nullptr, nullptr);
            }
            index = instance->GetInstanceStart();
        }
        return Describe(name, context_->GetOutputShape(index), context_->GetOutputDesc(index));
    }

    // ------------------------------------------------------------------ attributes
    int64_t Int(size_t index, const char* name) {
        const int64_t* value = Attr<int64_t>(index, name);
        return value == nullptr ? 0 : *value;
    }
    float Float(size_t index, const char* name) {
        const float* value = Attr<float>(index, name);
        return value == nullptr ? 0.0f : *value;
    }
    bool Bool(size_t index, const char* name) {
        const bool* value = Attr<bool>(index, name);
        return value != nullptr && *value;
    }
    std::string String(size_t index, const char* name) {
        const char* value = Attr<char>(index, name);
        return value == nullptr ? std::string() : std::string(value);
    }

    // ------------------------------------------------------------------ checks
    void ExpectShape(const Operand& operand, const Dims& dims) {
        if (operand.present && operand.dims != dims) {
            Fail("%s: expected shape %s, got %s", operand.name.c_str(), DimsText(dims).c_str(),
                 DimsText(operand.dims).c_str());
        }
    }
    void ExpectType(const Operand& operand, ge::DataType type) {
        if (operand.present && operand.type != type) {
            Fail("%s: expected %s, got %s", operand.name.c_str(), TypeText(type),
                 TypeText(operand.type));
        }
    }
    void ExpectType(const Operand& operand, ge::DataType first, ge::DataType second) {
        if (operand.present && operand.type != first && operand.type != second) {
            Fail("%s: expected %s or %s, got %s", operand.name.c_str(), TypeText(first),
                 TypeText(second), TypeText(operand.type));
        }
    }
    // The type of q, k, v and the caches, which is that of an op's first such operand. The caller
    // wants all others to equal it, and tells the kernel by ChunkGeometry::ioIsHalf.
    ge::DataType IoType(const Operand& first) {
        ExpectType(first, ge::DT_BF16, ge::DT_FLOAT16);
        return first.type;
    }
    void Expect(const Operand& operand, ge::DataType type, const Dims& dims) {
        ExpectType(operand, type);
        ExpectShape(operand, dims);
    }
    void ExpectChunkSize(int64_t chunkSize) {
        if (chunkSize != kChunkRows) {
            Fail("chunk_size: expected %d, got %lld", kChunkRows,
                 static_cast<long long>(chunkSize));
        }
    }
    void ExpectHeads(int64_t valueHeads, int64_t keyHeads) {
        if (keyHeads <= 0 || valueHeads < keyHeads || valueHeads % keyHeads != 0) {
            Fail("heads: expected Hv to be a multiple of Hk, got Hk = %lld, Hv = %lld",
                 static_cast<long long>(keyHeads), static_cast<long long>(valueHeads));
        }
    }
    // Not in this version: whatever else an attribute or operand asks for.
    void Refuse(bool asked, const char* what) {
        if (asked) {
            Fail("%s is not supported yet", what);
        }
    }

    // ------------------------------------------------------------------ layouts
    Layout ReadLayout(size_t index, const char* name) {
        Layout layout = Layout();
        const std::string text = String(index, name);
        if (!ParseLayout(text.c_str(), &layout)) {
            Fail("%s: expected one of BNSD, BSND, NTD, TND, got '%s'", name, text.c_str());
        }
        return layout;
    }
    // A second one, which must have a batch axis just as the first.
    Layout ReadLayout(size_t index, const char* name, size_t firstIndex, const char* firstName) {
        const Layout first = ReadLayout(firstIndex, firstName);
        const Layout layout = ReadLayout(index, name);
        if (layout.rank3 != first.rank3) {
            Fail("%s: expected one of %s (%s is %s), got '%s'", name,
                 first.rank3 ? "NTD, TND" : "BNSD, BSND", firstName,
                 String(firstIndex, firstName).c_str(), String(index, name).c_str());
        }
        return layout;
    }
    void ExpectRank(const Operand& operand, size_t rank, const char* reason = "") {
        if (operand.dims.size() != rank) {
            Fail("%s: expected %zu dimensions%s, got shape %s", operand.name.c_str(), rank, reason,
                 DimsText(operand.dims).c_str());
        }
    }
    // Sizes from an operand of that layout, the op's first input.
    CallSizes Sizes(const Operand& input, const Layout& layout) {
        ExpectRank(input, RowRank(layout),
                   layout.rank3 ? " (as layouts NTD and TND; BNSD and BSND have a batch axis)"
                                : " (as layouts BNSD and BSND; NTD and TND have no batch axis)");
        return ok_ ? SizesOf(layout, input.dims) : CallSizes();
    }
    // From a head-major cache where no attribute names a layout: [B,H,T,*], or [H,T,*].
    CallSizes Sizes(const Operand& cache) {
        return Sizes(cache, CacheLayout(cache.dims.size() == 3));
    }

    // ------------------------------------------------------------------ geometry
    // Every batch row is one sequence.
    ChunkGeometry DenseGeometry(const CallSizes& sizes, int64_t chunkSize) {
        ChunkGeometry geometry = ChunkGeometry();
        ExpectChunkSize(chunkSize);
        ExpectHeads(sizes.valueHeads, sizes.keyHeads);
        if (sizes.batch < 1 || sizes.tokens < 0) {
            Fail("batch and tokens: expected at least 1 and 0, got %lld and %lld",
                 static_cast<long long>(sizes.batch), static_cast<long long>(sizes.tokens));
        }
        if (!ok_) {
            return geometry;
        }
        geometry.batch = sizes.batch;
        geometry.tokens = sizes.tokens;
        geometry.sequences = sizes.batch;
        geometry.chunksPerSequence = (sizes.tokens + chunkSize - 1) / chunkSize;
        geometry.chunksPerBatchRow = geometry.chunksPerSequence;
        geometry.totalChunks = sizes.batch * geometry.chunksPerBatchRow;
        geometry.valueHeads = sizes.valueHeads;
        geometry.keyHeads = sizes.keyHeads;
        geometry.headGroup = static_cast<int32_t>(sizes.valueHeads / sizes.keyHeads);
        geometry.chunkSize = static_cast<int32_t>(chunkSize);
        return geometry;
    }

    // The same for a stage that takes cu_seqlens and chunk_indices: both, or none for dense.
    ChunkGeometry Geometry(const CallSizes& sizes, int64_t chunkSize, size_t cuSeqlens,
                           size_t chunkIndices) {
        ChunkGeometry geometry = SummaryGeometry(sizes, chunkSize, cuSeqlens);
        const IntList cu = List(cuSeqlens, "cu_seqlens");
        const IntList pairs = List(chunkIndices, "chunk_indices");
        if (!ok_ || (!cu.present && !pairs.present)) {
            return geometry;
        }
        if (!cu.present) {
            Fail("chunk_indices: expected None without cu_seqlens, got %lld numbers",
                 static_cast<long long>(pairs.count));
        } else if (!pairs.present && geometry.totalChunks > 0) {
            Fail("chunk_indices: expected %lld pairs (the chunks of cu_seqlens), got none",
                 static_cast<long long>(geometry.totalChunks));
        } else {
            CheckPairs(cu, pairs, geometry);
        }
        return geometry;
    }

    // The same for a stage without chunk slots, which takes cu_seqlens only.
    ChunkGeometry SummaryGeometry(const CallSizes& sizes, int64_t chunkSize, size_t cuSeqlens) {
        ChunkGeometry geometry = DenseGeometry(sizes, chunkSize);
        const IntList cu = List(cuSeqlens, "cu_seqlens");
        if (ok_ && cu.present) {
            CheckBounds(cu, geometry);
            Pack(cu, geometry);
        }
        return geometry;
    }

    // The same for a stage that works on the first sequence only. Two entries may bound any
    // stretch of tokens: so the other sequences of a batch can be asked for one by one.
    ChunkGeometry FirstSequenceGeometry(const CallSizes& sizes, int64_t chunkSize,
                                        size_t cuSeqlens) {
        ChunkGeometry geometry = DenseGeometry(sizes, chunkSize);
        const IntList cu = List(cuSeqlens, "cu_seqlens");
        if (!ok_ || !cu.present) {
            return geometry;
        }
        if (cu.count != 2) {
            CheckBounds(cu, geometry);
        } else if (cu.values[0] < 0 || cu.values[0] > cu.values[1] ||
                   cu.values[1] > geometry.tokens) {
            Fail(
                "cu_seqlens: expected two entries with 0 <= first <= second <= %lld tokens, got "
                "[%lld,%lld]",
                static_cast<long long>(geometry.tokens), static_cast<long long>(cu.values[0]),
                static_cast<long long>(cu.values[1]));
        }
        Pack(cu, geometry);
        geometry.sequences = 1;
        return geometry;
    }

    // ------------------------------------------------------------------ launch
    int64_t CoreCount() const {
        platform_ascendc::PlatformAscendC platform(context_->GetPlatformInfo());
        return static_cast<int64_t>(platform.GetCoreNumAic());
    }

    // min(cores, tasks), at least 1: an empty launch still runs one block that finds no task.
    int64_t BlockCount(int64_t tasks) const {
        const int64_t cores = CoreCount();
        const int64_t blocks = tasks < cores ? tasks : cores;
        return blocks < 1 ? 1 : blocks;
    }

    // Workspace: `bytesPerBlock` for every block plus `sharedBytes`, plus what the mixed kernels
    // and SyncAll reserve. resident: SyncAll or mode 0 flags need all blocks on cores at once.
    void Launch(int64_t blocks, int64_t bytesPerBlock, int64_t sharedBytes, bool resident) {
        if (!ok_) {
            return;
        }
        platform_ascendc::PlatformAscendC platform(context_->GetPlatformInfo());
        context_->SetBlockDim(static_cast<uint32_t>(blocks));
        if (resident) {
            context_->SetScheduleMode(1);
        }
        size_t* sizes = context_->GetWorkspaceSizes(1);
        if (sizes == nullptr) {
            Fail("the tiling context has no room for a workspace size");
            return;
        }
        sizes[0] = static_cast<size_t>(blocks * bytesPerBlock + sharedBytes) +
                   static_cast<size_t>(platform.GetLibApiWorkSpaceSize());
    }

    template <typename T>
    T* Data() {
        T* data = ok_ ? context_->GetTilingData<T>() : nullptr;
        if (ok_ && data == nullptr) {
            Fail("the tiling context has no room for %zu bytes of tiling data", sizeof(T));
        }
        return data;
    }

private:
    Operand Describe(const char* name, const gert::StorageShape* shape,
                     const gert::CompileTimeTensorDesc* desc) {
        Operand operand;
        operand.name = name;
        if (shape == nullptr || desc == nullptr) {
            return operand;
        }
        operand.present = true;
        operand.type = desc->GetDataType();
        operand.dims = DimsOf(shape->GetStorageShape());
        return operand;
    }

    // The values of a ValueDepend input, which the tiling may read.
    struct IntList {
        bool present;
        const int64_t* values;
        int64_t count;
    };

    IntList List(size_t irIndex, const char* name) {
        IntList list = IntList();
        const gert::Tensor* tensor = context_->GetOptionalInputTensor(irIndex);
        if (tensor == nullptr) {
            return list;
        }
        list.present = true;
        list.count = tensor->GetShapeSize();
        list.values = tensor->GetData<int64_t>();
        if (list.values == nullptr && list.count != 0) {
            Fail("%s: expected values that are known on the host", name);
        }
        return list;
    }

    // [0, ..., T], not decreasing: an empty sequence repeats an entry.
    void CheckBounds(const IntList& cu, const ChunkGeometry& geometry) {
        if (cu.count < 2) {
            Fail("cu_seqlens: expected at least 2 entries, got %lld",
                 static_cast<long long>(cu.count));
            return;
        }
        if (cu.values[0] != 0) {
            Fail("cu_seqlens: expected its first entry to be 0, got %lld",
                 static_cast<long long>(cu.values[0]));
        }
        for (int64_t i = 1; i < cu.count; ++i) {
            if (cu.values[i] < cu.values[i - 1]) {
                Fail(
                    "cu_seqlens: expected entries that do not decrease, got %lld behind %lld "
                    "(entry "
                    "%lld)",
                    static_cast<long long>(cu.values[i]), static_cast<long long>(cu.values[i - 1]),
                    static_cast<long long>(i));
                return;
            }
        }
        if (cu.values[cu.count - 1] != geometry.tokens) {
            Fail("cu_seqlens: expected its last entry to be T = %lld, got %lld",
                 static_cast<long long>(geometry.tokens),
                 static_cast<long long>(cu.values[cu.count - 1]));
        }
    }

    // Sequences and chunks of checked bounds.
    void Pack(const IntList& cu, ChunkGeometry& geometry) {
        if (geometry.batch != 1) {
            Fail("B: expected 1 with cu_seqlens, got %lld", static_cast<long long>(geometry.batch));
        }
        if (!ok_) {
            return;
        }
        geometry.packed = 1;
        geometry.sequences = cu.count - 1;
        geometry.chunksPerSequence = 0;
        geometry.totalChunks = 0;
        for (int64_t i = 0; i + 1 < cu.count; ++i) {
            geometry.totalChunks += ChunksOf(cu, i);
        }
        geometry.chunksPerBatchRow = geometry.totalChunks;
    }
    static int64_t ChunksOf(const IntList& cu, int64_t sequence) {
        return (cu.values[sequence + 1] - cu.values[sequence] + kChunkRows - 1) / kChunkRows;
    }

    // Exactly the chunks of cu_seqlens, sequence after sequence.
    void CheckPairs(const IntList& cu, const IntList& pairs, const ChunkGeometry& geometry) {
        if (pairs.count != 2 * geometry.totalChunks) {
            Fail("chunk_indices: expected %lld pairs (the chunks of cu_seqlens), got %lld numbers",
                 static_cast<long long>(geometry.totalChunks), static_cast<long long>(pairs.count));
            return;
        }
        int64_t slot = 0;
        for (int64_t sequence = 0; sequence < geometry.sequences; ++sequence) {
            for (int64_t chunk = 0; chunk < ChunksOf(cu, sequence); ++chunk, ++slot) {
                const int64_t* pair = pairs.values + 2 * slot;
                if (pair[0] != sequence || pair[1] != chunk) {
                    Fail("chunk_indices: expected (%lld, %lld) as pair %lld, got (%lld, %lld)",
                         static_cast<long long>(sequence), static_cast<long long>(chunk),
                         static_cast<long long>(slot), static_cast<long long>(pair[0]),
                         static_cast<long long>(pair[1]));
                    return;
                }
            }
        }
    }

    template <typename T>
    const T* Attr(size_t index, const char* name) {
        const gert::RuntimeAttrs* attrs = context_->GetAttrs();
        const T* value = attrs == nullptr ? nullptr : attrs->GetAttrPointer<T>(index);
        if (value == nullptr) {
            Fail("attribute %s is missing", name);
        }
        return value;
    }

    gert::TilingContext* context_;
    bool ok_;
};

}  // namespace kda

#endif  // KDA_OP_HOST_COMMON_STAGE_TILING_H
