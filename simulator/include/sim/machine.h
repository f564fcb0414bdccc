// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include <cstddef>
#include <cstdint>

// The machine as the simulator knows it: memories, pipes, element types, instructions.
namespace sim {

enum class Space : uint8_t { Gm, Ub, L1, L0A, L0B, L0C, BiasTable, FixBuf, Count };

constexpr uint32_t kSpaceBytes[] = {0, 196608, 524288, 65536, 65536, 131072, 1024, 7168};
// What TPipe hands out: the end of UB serves old interfaces, the end of L1 the framework.
constexpr uint32_t kPipeBytes[] = {0, 188416, 524160, 65536, 65536, 131072, 1024, 7168};
constexpr uint32_t kSpaceAlign[] = {1, 32, 32, 512, 512, 64, 64, 64};
constexpr uint32_t kBlockBytes = 32;
constexpr uint32_t kRepeatBytes = 256;
constexpr uint32_t kFractalBytes = 512;

enum class Pipe : uint8_t { S, V, M, Mte1, Mte2, Mte3, Fix, All, Count };

enum class DType : uint8_t { F32, F16, BF16, I8, U8, I16, U16, I32, U32, I64, U64, None };

const char* Name(Space space);
const char* Name(Pipe pipe);
const char* Name(DType type);
uint32_t SizeOf(DType type);

// name, pipe
// clang-format off
#define SIM_INSTRUCTIONS(X) \
    X(Add, V) \
    X(Sub, V) \
    X(Mul, V) \
    X(Div, V) \
    X(Max, V) \
    X(Min, V) \
    X(And, V) \
    X(Or, V) \
    X(AddRelu, V) \
    X(SubRelu, V) \
    X(MulAddDst, V) \
    X(FusedMulAdd, V) \
    X(FusedMulAddRelu, V) \
    X(Adds, V) \
    X(Muls, V) \
    X(Maxs, V) \
    X(Mins, V) \
    X(ShiftLeft, V) \
    X(ShiftRight, V) \
    X(LeakyRelu, V) \
    X(Axpy, V) \
    X(Exp, V) \
    X(Ln, V) \
    X(Abs, V) \
    X(Sqrt, V) \
    X(Rsqrt, V) \
    X(Reciprocal, V) \
    X(Relu, V) \
    X(Not, V) \
    X(Duplicate, V) \
    X(Brcb, V) \
    X(Copy, V) \
    X(Cast, V) \
    X(Compare, V) \
    X(CompareScalar, V) \
    X(Select, V) \
    X(WholeReduceSum, V) \
    X(WholeReduceMax, V) \
    X(WholeReduceMin, V) \
    X(BlockReduceSum, V) \
    X(BlockReduceMax, V) \
    X(BlockReduceMin, V) \
    X(PairReduceSum, V) \
    X(RepeatReduceSum, V) \
    X(ReduceSum, V) \
    X(ReduceMax, V) \
    X(ReduceMin, V) \
    X(Gather, V) \
    X(Gatherb, V) \
    X(GatherMask, V) \
    X(Transpose, V) \
    X(TransDataTo5HD, V) \
    X(CreateVecIndex, V) \
    X(DataCopyUb, V) \
    X(SetCmpMask, V) \
    X(GetCmpMask, V) \
    X(DataCopyGm2Ub, Mte2) \
    X(DataCopyGm2L1, Mte2) \
    X(DataCopyNd2Nz, Mte2) \
    X(DataCopyPadIn, Mte2) \
    X(DataCopyUb2Gm, Mte3) \
    X(DataCopyPadOut, Mte3) \
    X(DataCopyL12Bt, Mte1) \
    X(LoadData, Mte1) \
    X(LoadDataGm, Mte2) \
    X(LoadDataWithTranspose, Mte1) \
    X(InitConstValue, Mte1) \
    X(Mmad, M) \
    X(Fixpipe, Fix) \
    X(GetValue, S) \
    X(SetValue, S) \
    X(SetFlag, S) \
    X(WaitFlag, S) \
    X(PipeBarrier, All) \
    X(CrossCoreSetFlag, S) \
    X(CrossCoreWaitFlag, S) \
    X(SyncAll, S) \
    X(DataCacheCleanAndInvalid, S) \
    X(InitBuffer, S) \
    X(AllocTensor, S) \
    X(EnQue, S) \
    X(DeQue, S) \
    X(FreeTensor, S) \
    X(AllocEventID, S) \
    X(ReleaseEventID, S) \
    X(GetTensor, S) \
    X(SetVectorMask, S) \
    X(SetAtomic, S) \
    X(GetTilingData, S) \
    X(Kernel, S)
// clang-format on

enum class Op : uint8_t {
#define SIM_OP(name, pipe) name,
    SIM_INSTRUCTIONS(SIM_OP)
#undef SIM_OP
        Count
};
constexpr size_t kOps = static_cast<size_t>(Op::Count);

const char* Name(Op op);
Pipe PipeOf(Op op);

// Where in the kernel's source an instruction stands; default arguments fill it in at the call.
struct Where {
    const char* file;
    int line;
    // A function of its own: the builtins written directly in a template's default argument would
    // name the header.
    static constexpr Where Here(const char* atFile = __builtin_FILE(),
                                int atLine = __builtin_LINE()) {
        return Where{atFile, atLine};
    }
};

}  // namespace sim

#define SIM_WHERE const ::sim::Where& where = ::sim::Where::Here()

#endif  // SIM_MACHINE_H
