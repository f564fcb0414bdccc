// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#include "launcher.h"

using namespace AscendC;

namespace {

constexpr uint32_t kBytes = 16384;  // of each of the four UB images

// Everything a case needs, by position in TestParams.
struct Case {
    explicit Case(const TestParams& p)
        : op(p.v[0]),
          type(p.v[1]),
          form(p.v[2]),
          count(static_cast<int32_t>(p.v[3])),
          mask(static_cast<uint64_t>(p.v[3])),
          bits{static_cast<uint64_t>(p.v[4]), static_cast<uint64_t>(p.v[5])},
          repeats(static_cast<uint8_t>(p.v[6])),
          binary(uint8_t(p.v[7]), uint8_t(p.v[8]), uint8_t(p.v[9]), uint8_t(p.v[10]),
                 uint8_t(p.v[11]), uint8_t(p.v[12])),
          unary(uint16_t(p.v[7]), uint16_t(p.v[8]), uint8_t(p.v[10]), uint8_t(p.v[11])),
          scalar(p.v[13]),
          extra(p.v[14]),
          more(p.v[15]) {}
    int64_t op;
    int64_t type;
    int64_t form;  // 0: count, 1: mask, 2: bits
    int32_t count;
    uint64_t mask;
    uint64_t bits[2];
    uint8_t repeats;
    BinaryRepeatParams binary;
    UnaryRepeatParams unary;
    int64_t scalar;
    int64_t extra;
    int64_t more;
};

template <typename T>
T Scalar(int64_t bits) {
    T value;
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}

// UB images of in0, in1, in2 and out.
class Images {
public:
    Images(TPipe* pipe, GM_ADDR in0, GM_ADDR in1, GM_ADDR in2, GM_ADDR out) : out_(out) {
        GM_ADDR sources[] = {in0, in1, in2, out};
        for (int i = 0; i < 4; ++i) {
            pipe->InitBuffer(buffers_[i], kBytes);
            DataCopy(buffers_[i].Get<int32_t>(), Gm<int32_t>(sources[i]), kBytes / 4);
        }
        Settle();
    }
    template <typename T>
    LocalTensor<T> At(int i) {
        return buffers_[i].Get<T>();
    }
    void Finish() {
        Settle();
        DataCopy(Gm<int32_t>(out_), buffers_[3].Get<int32_t>(), kBytes / 4);
    }

private:
    TBuf<TPosition::VECCALC> buffers_[4];
    GM_ADDR out_;
};

#define BINARY(name)                                \
    if (c.form == 0) {                              \
        name(d, a, b, c.count);                     \
    } else if (c.form == 1) {                       \
        name(d, a, b, c.mask, c.repeats, c.binary); \
    } else {                                        \
        name(d, a, b, c.bits, c.repeats, c.binary); \
    }                                               \
    return
#define UNARY(name)                             \
    if (c.form == 0) {                          \
        name(d, a, c.count);                    \
    } else if (c.form == 1) {                   \
        name(d, a, c.mask, c.repeats, c.unary); \
    } else {                                    \
        name(d, a, c.bits, c.repeats, c.unary); \
    }                                           \
    return
#define SCALAR(name)                                                 \
    if (c.form == 0) {                                               \
        name(d, a, Scalar<T>(c.scalar), c.count);                    \
    } else if (c.form == 1) {                                        \
        name(d, a, Scalar<T>(c.scalar), c.mask, c.repeats, c.unary); \
    } else {                                                         \
        name(d, a, Scalar<T>(c.scalar), c.bits, c.repeats, c.unary); \
    }                                                                \
    return

template <typename T>
void Numeric(Case& c, const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b) {
    switch (c.op) {
        case 0:
            BINARY(Add);
        case 1:
            BINARY(Sub);
        case 2:
            BINARY(Mul);
        case 3:
            BINARY(Max);
        case 4:
            BINARY(Min);
        case 5:
            SCALAR(Adds);
        case 6:
            SCALAR(Muls);
        case 7:
            SCALAR(Maxs);
        case 8:
            SCALAR(Mins);
        default:
            break;
    }
}

template <typename T>
void Floating(Case& c, const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b) {
    switch (c.op) {
        case 20:
            BINARY(Div);
        case 21:
            BINARY(AddRelu);
        case 22:
            BINARY(SubRelu);
        case 23:
            BINARY(FusedMulAdd);
        case 24:
            BINARY(FusedMulAddRelu);
        case 25:
            BINARY(MulAddDst);
        case 30:
            UNARY(Exp);
        case 31:
            UNARY(Ln);
        case 32:
            UNARY(Abs);
        case 33:
            UNARY(Sqrt);
        case 34:
            UNARY(Rsqrt);
        case 35:
            UNARY(Reciprocal);
        case 36:
            UNARY(Relu);
        case 40:
            SCALAR(LeakyRelu);
        case 41:
            SCALAR(Axpy);
        default:
            Numeric(c, d, a, b);
    }
}

template <typename T>
void Integer(Case& c, const LocalTensor<T>& d, const LocalTensor<T>& a) {
    if (c.op == 50) {
        SCALAR(ShiftLeft);
    }
    if (c.op == 51) {
        SCALAR(ShiftRight);
    }
}

template <typename T>
void Logic(Case& c, const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b) {
    if (c.op == 60) {
        BINARY(And);
    }
    if (c.op == 61) {
        BINARY(Or);
    }
    if (c.op == 62) {
        UNARY(Not);
    }
    Integer(c, d, a);
}

template <typename D, typename S>
void Convert(Case& c, const LocalTensor<D>& d, const LocalTensor<S>& a) {
    const RoundMode mode = static_cast<RoundMode>(c.extra);
    if (c.form == 0) {
        Cast(d, a, mode, static_cast<uint32_t>(c.count));
    } else if (c.form == 1) {
        Cast(d, a, mode, c.mask, c.repeats, c.unary);
    } else {
        Cast(d, a, mode, c.bits, c.repeats, c.unary);
    }
}

}  // namespace

TEST_KERNEL(test_vector) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, params, tiling);
    TPipe pipe;
    Images images(&pipe, in0, in1, in2, out);
    Case c(params);
    if (c.type == 0) {
        Floating<float>(c, images.At<float>(3), images.At<float>(0), images.At<float>(1));
    } else if (c.type == 1) {
        Floating<half>(c, images.At<half>(3), images.At<half>(0), images.At<half>(1));
    } else if (c.type == 2 && c.op >= 50) {
        Integer<int32_t>(c, images.At<int32_t>(3), images.At<int32_t>(0));
    } else if (c.type == 2) {
        Numeric<int32_t>(c, images.At<int32_t>(3), images.At<int32_t>(0), images.At<int32_t>(1));
    } else if (c.type == 3 && c.op < 50) {
        Numeric<int16_t>(c, images.At<int16_t>(3), images.At<int16_t>(0), images.At<int16_t>(1));
    } else {
        Logic<uint16_t>(c, images.At<uint16_t>(3), images.At<uint16_t>(0), images.At<uint16_t>(1));
    }
    images.Finish();
}

TEST_KERNEL(test_mixed_multiply_add) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, params, tiling);
    TPipe pipe;
    Images images(&pipe, in0, in1, in2, out);
    Case c(params);
    LocalTensor<float> d = images.At<float>(3);
    if (c.op == 0) {
        MulAddDst(d, images.At<half>(0), images.At<half>(1), c.mask, c.repeats, c.binary);
    } else {
        Axpy(d, images.At<half>(0), Scalar<half>(c.scalar), c.mask, c.repeats, c.unary);
    }
    images.Finish();
}

TEST_KERNEL(test_cast) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, params, tiling);
    TPipe pipe;
    Images images(&pipe, in0, in1, in2, out);
    Case c(params);
#define CAST(number, D, S)                                  \
    if (c.type == number) {                                 \
        Convert<D, S>(c, images.At<D>(3), images.At<S>(0)); \
    }
    CAST(0, bfloat16_t, float)
    CAST(1, half, float)
    CAST(2, float, bfloat16_t)
    CAST(3, float, half)
    CAST(4, int32_t, float)
    CAST(5, int64_t, float)
    CAST(6, float, int32_t)
    CAST(7, float, int64_t)
    CAST(8, int32_t, int64_t)
    CAST(9, int64_t, int32_t)
    CAST(10, float, float)
    CAST(11, int16_t, float)
    CAST(12, int32_t, half)
    CAST(13, half, int16_t)
    CAST(14, int32_t, bfloat16_t)
    CAST(15, half, uint8_t)
    CAST(16, uint8_t, half)
#undef CAST
    images.Finish();
}

// Duplicate, Brcb, Copy, UB to UB, gathers, transposes, index vectors.
TEST_KERNEL(test_rearrange) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(TestParams, params, tiling);
    TPipe pipe;
    Images images(&pipe, in0, in1, in2, out);
    Case c(params);
    LocalTensor<float> f = images.At<float>(3);
    LocalTensor<bfloat16_t> h = images.At<bfloat16_t>(3);
    const uint16_t dstBlock = static_cast<uint16_t>(params.v[7]);
    const uint16_t dstRepeat = static_cast<uint16_t>(params.v[10]);
    const uint16_t srcBlock = static_cast<uint16_t>(params.v[8]);
    const uint16_t srcRepeat = static_cast<uint16_t>(params.v[11]);
    const bool wide = c.type == 0;
    switch (c.op) {
        case 0:
            if (wide && c.form == 0) {
                Duplicate(f, Scalar<float>(c.scalar), c.count);
            } else if (wide && c.form == 1) {
                Duplicate(f, Scalar<float>(c.scalar), c.mask, c.repeats, dstBlock, dstRepeat);
            } else if (wide) {
                Duplicate(f, Scalar<float>(c.scalar), c.bits, c.repeats, dstBlock, dstRepeat);
            } else if (c.form == 0) {
                Duplicate(h, Scalar<bfloat16_t>(c.scalar), c.count);
            } else {
                Duplicate(h, Scalar<bfloat16_t>(c.scalar), c.bits, c.repeats, dstBlock, dstRepeat);
            }
            break;
        case 1:
            if (wide) {
                Brcb(f, images.At<float>(0), c.repeats, BrcbRepeatParams(dstBlock, dstRepeat));
            } else {
                Brcb(h, images.At<bfloat16_t>(0), c.repeats, BrcbRepeatParams(dstBlock, dstRepeat));
            }
            break;
        case 2: {
            const CopyRepeatParams copy(dstBlock, srcBlock, dstRepeat, srcRepeat);
            if (wide) {
                Copy(f, images.At<float>(0), c.mask, c.repeats, copy);
            } else {
                Copy(h, images.At<bfloat16_t>(0), c.bits, c.repeats, copy);
            }
            break;
        }
        case 3:
            DataCopy(f, images.At<float>(0),
                     DataCopyParams(c.repeats, static_cast<uint16_t>(c.count), srcBlock, dstBlock));
            break;
        case 4:
            DataCopy(f, images.At<float>(0), static_cast<uint32_t>(c.count));
            break;
        case 5:
            if (wide && c.form == 0) {
                Gather(f, images.At<float>(0), images.At<uint32_t>(1), c.extra,
                       static_cast<uint32_t>(c.count));
            } else if (wide) {
                Gather(f, images.At<float>(0), images.At<uint32_t>(1), c.extra, c.mask, c.repeats,
                       dstRepeat);
            } else {
                Gather(h, images.At<bfloat16_t>(0), images.At<uint32_t>(1), c.extra, c.mask,
                       c.repeats, dstRepeat);
            }
            break;
        case 6:
            Gatherb(images.At<uint32_t>(3), images.At<uint32_t>(0), images.At<uint32_t>(1),
                    c.repeats, GatherRepeatParams(dstBlock, dstRepeat));
            break;
        case 7: {
            uint64_t kept = 0;
            const GatherMaskParams mask(1, c.repeats, srcRepeat, 1);
            if (c.form == 0) {
                GatherMask(f, images.At<float>(0), static_cast<uint8_t>(c.extra), c.more != 0,
                           static_cast<uint32_t>(c.count), mask, kept);
            } else {
                GatherMask(f, images.At<float>(0), images.At<uint32_t>(1), c.more != 0,
                           static_cast<uint32_t>(c.count), mask, kept);
            }
            f.SetValue(4095, static_cast<float>(kept));
            break;
        }
        case 8:
            Transpose(images.At<half>(3), images.At<half>(0));
            break;
        case 9: {
            LocalTensor<half> dst[16];
            LocalTensor<half> src[16];
            for (int i = 0; i < 16; ++i) {
                dst[i] = images.At<half>(3)[i * c.extra];
                src[i] = images.At<half>(0)[i * c.more];
            }
            TransDataTo5HD(dst, src,
                           TransDataTo5HDParams(false, false, c.repeats, dstRepeat, srcRepeat));
            break;
        }
        case 10: {
            LocalTensor<float> dst[16];
            LocalTensor<float> src[16];
            for (int i = 0; i < 16; ++i) {
                dst[i] = f[i * c.extra];
                src[i] = images.At<float>(0)[i * c.more];
            }
            TransDataTo5HD(dst, src,
                           TransDataTo5HDParams(false, false, c.repeats, dstRepeat, srcRepeat));
            break;
        }
        case 11:
            if (wide) {
                CreateVecIndex(f, Scalar<float>(c.scalar), static_cast<uint32_t>(c.count));
            } else {
                LocalTensor<int32_t> index = images.At<int32_t>(3);
                CreateVecIndex(index, Scalar<int32_t>(c.scalar), c.mask, c.repeats, dstBlock,
                               dstRepeat);
            }
            break;
        default:
            break;
    }
    images.Finish();
}
