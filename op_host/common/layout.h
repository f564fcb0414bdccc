// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors

// Shapes of operands with one row a (batch, head, token), in the four layouts. Tiling and shape
// inference both use them.
#ifndef KDA_OP_HOST_COMMON_LAYOUT_H
#define KDA_OP_HOST_COMMON_LAYOUT_H

#include <cstdint>
#include <cstring>
#include <vector>

#include "register/op_impl_registry.h"

#include "../../op_kernel/common/chunk_geometry.h"

namespace kda {

typedef std::vector<int64_t> Dims;

// BNSD [B,H,T,D], BSND [B,T,H,D], NTD [H,T,D], TND [T,H,D].
struct Layout {
    bool tokenMajor;
    bool rank3;  // without a batch axis
};

// False for any other text.
inline bool ParseLayout(const char* text, Layout* layout) {
    layout->tokenMajor = std::strcmp(text, "BSND") == 0 || std::strcmp(text, "TND") == 0;
    layout->rank3 = std::strcmp(text, "NTD") == 0 || std::strcmp(text, "TND") == 0;
    return layout->tokenMajor || layout->rank3 || std::strcmp(text, "BNSD") == 0;
}

// Caches are head-major, [B,H,T,D] or [H,T,D].
inline Layout CacheLayout(bool rank3) {
    Layout layout = Layout();
    layout.rank3 = rank3;
    return layout;
}

// Batch and tokens of a call; without a batch axis the batch is 1.
struct CallSizes {
    bool rank3;
    int64_t batch;
    int64_t tokens;
    int64_t valueHeads;
    int64_t keyHeads;
};

inline size_t HeadAxis(const Layout& layout) {
    return (layout.rank3 ? 0 : 1) + (layout.tokenMajor ? 1 : 0);
}
inline size_t TokenAxis(const Layout& layout) {
    return (layout.rank3 ? 0 : 1) + (layout.tokenMajor ? 0 : 1);
}
inline size_t RowRank(const Layout& layout) {
    return layout.rank3 ? 3 : 4;
}

// Sizes from an operand of that layout and rank, its heads taken for both kinds.
inline CallSizes SizesOf(const Layout& layout, const Dims& dims) {
    CallSizes sizes = CallSizes();
    sizes.rank3 = layout.rank3;
    sizes.batch = layout.rank3 ? 1 : dims[0];
    sizes.tokens = dims[TokenAxis(layout)];
    sizes.valueHeads = dims[HeadAxis(layout)];
    sizes.keyHeads = sizes.valueHeads;
    return sizes;
}

// One value a token and head.
inline Dims RowDims(const Layout& layout, const CallSizes& sizes, int64_t heads) {
    Dims dims;
    if (!layout.rank3) {
        dims.push_back(sizes.batch);
    }
    dims.push_back(layout.tokenMajor ? sizes.tokens : heads);
    dims.push_back(layout.tokenMajor ? heads : sizes.tokens);
    return dims;
}
inline Dims RowDims(const Layout& layout, const CallSizes& sizes, int64_t heads, int64_t width) {
    Dims dims = RowDims(layout, sizes, heads);
    dims.push_back(width);
    return dims;
}
inline Dims CacheDims(const CallSizes& sizes, int64_t heads) {
    return RowDims(CacheLayout(sizes.rank3), sizes, heads);
}
inline Dims CacheDims(const CallSizes& sizes, int64_t heads, int64_t width) {
    return RowDims(CacheLayout(sizes.rank3), sizes, heads, width);
}

inline TokenLayout RowLayout(const Layout& layout, const CallSizes& sizes, int64_t heads,
                             int64_t width) {
    TokenLayout row = TokenLayout();
    row.batchStride = heads * sizes.tokens * width;
    row.headStride = layout.tokenMajor ? width : sizes.tokens * width;
    row.tokenStride = layout.tokenMajor ? heads * width : width;
    return row;
}

inline Dims DimsOf(const gert::Shape& shape) {
    Dims dims;
    for (size_t i = 0; i < shape.GetDimNum(); ++i) {
        dims.push_back(shape.GetDim(i));
    }
    return dims;
}

}  // namespace kda

#endif  // KDA_OP_HOST_COMMON_LAYOUT_H
