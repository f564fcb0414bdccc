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
#include <vector>

#include "base/err_msg.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

#include "../../op_kernel/common/chunk_geometry.h"

namespace kda {

typedef std::vector<int64_t> Dims;

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
    void ExpectRank(const Operand& operand, size_t rank) {
        if (operand.present && operand.dims.size() != rank) {
            Fail("%s: expected %zu dimensions, got shape %s", operand.name.c_str(), rank,
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
    // Not in this version: packed batches and whatever else an attribute or operand asks for.
    void RefusePacked(size_t cuSeqlens) {
        Refuse(context_->GetOptionalInputShape(cuSeqlens) != nullptr, "cu_seqlens");
    }
    void RefusePacked(size_t cuSeqlens, size_t chunkIndices) {
        RefusePacked(cuSeqlens);
        Refuse(context_->GetOptionalInputShape(chunkIndices) != nullptr, "chunk_indices");
    }
    void Refuse(bool asked, const char* what) {
        if (asked) {
            Fail("%s is not supported yet", what);
        }
    }

    // ------------------------------------------------------------------ geometry
    // Dense batches: every batch row is one sequence.
    ChunkGeometry Geometry(int64_t batch, int64_t tokens, int64_t valueHeads, int64_t keyHeads,
                           int64_t chunkSize) {
        ChunkGeometry geometry = ChunkGeometry();
        ExpectChunkSize(chunkSize);
        ExpectHeads(valueHeads, keyHeads);
        if (batch < 1 || tokens < 0) {
            Fail("batch and tokens: expected at least 1 and 0, got %lld and %lld",
                 static_cast<long long>(batch), static_cast<long long>(tokens));
        }
        if (!ok_) {
            return geometry;
        }
        geometry.batch = batch;
        geometry.tokens = tokens;
        geometry.sequences = batch;
        geometry.chunksPerSequence = (tokens + chunkSize - 1) / chunkSize;
        geometry.chunksPerBatchRow = geometry.chunksPerSequence;
        geometry.totalChunks = batch * geometry.chunksPerBatchRow;
        geometry.valueHeads = valueHeads;
        geometry.keyHeads = keyHeads;
        geometry.headGroup = static_cast<int32_t>(valueHeads / keyHeads);
        geometry.chunkSize = static_cast<int32_t>(chunkSize);
        return geometry;
    }

    // "BNSD" is head-major [B,H,T,D], "BSND" token-major [B,T,H,D].
    bool IsTokenMajor(const char* attribute, const std::string& layout) {
        if (layout == "BSND") {
            return true;
        }
        if (layout == "NTD" || layout == "TND") {
            Refuse(true, (std::string(attribute) + "=" + layout).c_str());
        } else if (layout != "BNSD") {
            Fail("%s: expected one of BNSD, BSND, NTD, TND, got '%s'", attribute, layout.c_str());
        }
        return false;
    }

    static Dims RowDims(bool tokenMajor, int64_t batch, int64_t heads, int64_t tokens,
                        int64_t width) {
        return tokenMajor ? Dims{batch, tokens, heads, width} : Dims{batch, heads, tokens, width};
    }
    // [B,H,T] or [B,T,H]: one value a token and head.
    static Dims RowDims(bool tokenMajor, int64_t batch, int64_t heads, int64_t tokens) {
        return tokenMajor ? Dims{batch, tokens, heads} : Dims{batch, heads, tokens};
    }
    static TokenLayout RowLayout(bool tokenMajor, int64_t heads, int64_t tokens, int64_t width) {
        TokenLayout layout = TokenLayout();
        layout.batchStride = heads * tokens * width;
        layout.headStride = tokenMajor ? width : tokens * width;
        layout.tokenStride = tokenMajor ? heads * width : width;
        return layout;
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
        const gert::Shape& dims = shape->GetStorageShape();
        for (size_t i = 0; i < dims.GetDimNum(); ++i) {
            operand.dims.push_back(dims.GetDim(i));
        }
        return operand;
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
