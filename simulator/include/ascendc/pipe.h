// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The hyper_parallel_kda authors
#ifndef ASCENDC_PIPE_H
#define ASCENDC_PIPE_H

#include "ascendc/tensor.h"
#include "sim/pipe_state.h"

namespace AscendC {

class TPipe;

using TBufHandle = sim::Buffer*;

template <TPosition src, TPosition dst, int32_t depth, auto mask = 0>
class TQueBind {
public:
    TQueBind() = default;

    template <typename T>
    LocalTensor<T> AllocTensor(SIM_WHERE) {
        return LocalTensor<T>(sim::LocalOf(state_.Alloc(where), home));
    }
    template <typename T>
    void FreeTensor(LocalTensor<T>& tensor, SIM_WHERE) {
        state_.Free(tensor.Ref().buffer, freeBufEvt, where);
    }
    template <typename T>
    bool EnQue(const LocalTensor<T>& tensor, SIM_WHERE) {
        state_.EnQue(tensor.Ref().buffer, kDepth, enQueEvt, where);
        return true;
    }
    template <TPosition srcUserPos, TPosition dstUserPos, typename T>
    bool EnQue(const LocalTensor<T>& tensor, SIM_WHERE) {
        static_assert(UserPosition(srcUserPos) && UserPosition(dstUserPos) &&
                          !(srcUserPos == TPosition::GM && dstUserPos == TPosition::GM),
                      "EnQue supports GM, VECIN, VECOUT and VECCALC, not GM to GM");
        constexpr HardEvent event =
            sim::QueueEvent(sim::SpaceOf(srcUserPos), sim::SpaceOf(dstUserPos), true);
        state_.EnQue(tensor.Ref().buffer, kDepth, event, where);
        return true;
    }
    template <typename T>
    LocalTensor<T> DeQue(SIM_WHERE) {
        return LocalTensor<T>(sim::LocalOf(state_.DeQue(kDepth, enQueEvt, where), home));
    }
    template <TPosition srcUserPos, TPosition dstUserPos, typename T>
    LocalTensor<T> DeQue(SIM_WHERE) {
        static_assert(UserPosition(srcUserPos) && UserPosition(dstUserPos) &&
                          !(srcUserPos == TPosition::GM && dstUserPos == TPosition::GM),
                      "DeQue supports GM, VECIN, VECOUT and VECCALC, not GM to GM");
        constexpr HardEvent event =
            sim::QueueEvent(sim::SpaceOf(srcUserPos), sim::SpaceOf(dstUserPos), true);
        return LocalTensor<T>(sim::LocalOf(state_.DeQue(kDepth, event, where), home));
    }
    bool VacantInQue() { return state_.queued < kDepth; }
    bool HasTensorInQue() { return state_.queued != 0; }
    int32_t GetTensorCountInQue() { return static_cast<int32_t>(state_.queued); }
    bool HasIdleBuffer() { return state_.inUse < state_.count; }
    void FreeAllEvent() {}
    template <typename T>
    TBufState GetState(const LocalTensor<T>& tensor) const {
        return tensor.Ref().buffer->state;
    }

    static constexpr TPosition srcPosition = src;
    static constexpr TPosition dstPosition = dst;
    static constexpr bool isTQue = true;

protected:
    friend class TPipe;
    static constexpr bool UserPosition(TPosition position) {
        return position == TPosition::GM || position == TPosition::VECIN ||
               position == TPosition::VECOUT || position == TPosition::VECCALC;
    }
    static_assert(depth >= 0 && depth <= 64, "TQue: depth must be at most 64");
    static constexpr uint32_t kDepth = depth;
    static constexpr TPosition home = sim::QueueHome(src, dst);
    static constexpr HardEvent enQueEvt =
        sim::QueueEvent(sim::SpaceOf(src), sim::SpaceOf(dst), true);
    static constexpr HardEvent freeBufEvt =
        sim::QueueEvent(sim::SpaceOf(src), sim::SpaceOf(dst), false);

    sim::QueueState state_;
};

template <TPosition pos, int32_t depth, auto mask = 0>
class TQue : public TQueBind<sim::QueueEnd(pos, true), sim::QueueEnd(pos, false), depth, mask> {
    static_assert(sim::QueueEnd(pos, true) != TPosition::MAX,
                  "TQue: this position has no queue (VECCALC: use a TBuf)");

public:
    TQue() = default;
};

template <TPosition pos = TPosition::LCM>
class TBuf {
public:
    TBuf() = default;

    template <typename T>
    LocalTensor<T> Get(SIM_WHERE) {
        return LocalTensor<T>(Window(0, bytes_, where));
    }
    template <typename T>
    LocalTensor<T> Get(uint32_t len, SIM_WHERE) {
        return LocalTensor<T>(Window(0, static_cast<int64_t>(len) * sizeof(T), where));
    }
    template <typename T>
    LocalTensor<T> GetWithOffset(uint32_t size, uint32_t bufOffset, SIM_WHERE) {
        return LocalTensor<T>(Window(bufOffset, static_cast<int64_t>(size) * sizeof(T), where));
    }
    // The interface that a TBuf shares with queues: buffers of a TBuf never change hands.
    template <typename T>
    void EnQue(const LocalTensor<T>&) {}
    template <typename T>
    LocalTensor<T> DeQue(SIM_WHERE) {
        return Get<T>(where);
    }
    template <typename T>
    LocalTensor<T> AllocTensor(SIM_WHERE) {
        return Get<T>(where);
    }
    template <typename T>
    void FreeTensor(LocalTensor<T>&) {}

    static constexpr bool isTQue = false;

private:
    friend class TPipe;

    sim::Local Window(int64_t offset, int64_t bytes, const sim::Where& where) const {
        if (buffer_ == nullptr || offset + bytes > static_cast<int64_t>(bytes_)) {
            Refuse(offset, bytes, where);
        }
        sim::Local local = sim::LocalOf(buffer_, pos);
        local.offset = offset;
        local.length = static_cast<uint32_t>(bytes);
        return local;
    }
    [[noreturn]] void Refuse(int64_t offset, int64_t bytes, const sim::Where& where) const {
        sim::Core& core = sim::This();
        core.Begin(sim::Op::GetTensor, where);
        if (buffer_ == nullptr) {
            core.Fail("the TBuf was not initialised with InitBuffer");
        }
        core.Fail("%lld bytes from byte %lld of a TBuf of %u bytes", static_cast<long long>(bytes),
                  static_cast<long long>(offset), bytes_);
    }

    sim::Buffer* buffer_ = nullptr;
    uint32_t bytes_ = 0;
};

class TPipe {
public:
    TPipe() { state_.Init(); }
    ~TPipe() { state_.Destroy(); }
    TPipe(const TPipe&) = delete;
    TPipe& operator=(const TPipe&) = delete;

    void Init() { state_.Init(); }
    void Destroy() { state_.Destroy(); }
    void Reset() { state_.Reset(); }

    template <class T>
    bool InitBuffer(T& que, uint8_t num, uint32_t len, SIM_WHERE) {
        static_assert(T::isTQue, "InitBuffer(que, num, len) takes a TQue or TQueBind");
        que.state_ = sim::QueueState();
        que.state_.first = state_.Add(T::home, num, len, where);
        que.state_.count = num;
        return true;
    }
    template <TPosition pos>
    bool InitBuffer(TBuf<pos>& buf, uint32_t len, SIM_WHERE) {
        buf.buffer_ = state_.Add(pos, 1, len, where);
        buf.bytes_ = buf.buffer_->bytes;
        return true;
    }

    template <HardEvent evt>
    TEventID AllocEventID() {
        return sim::TakeEvent(*state_.core, evt, false);
    }
    template <HardEvent evt>
    void ReleaseEventID(TEventID id) {
        sim::ReleaseEvent(*state_.core, evt, id);
    }
    template <HardEvent evt>
    TEventID FetchEventID() {
        return sim::PeekEvent(*state_.core, evt);
    }
    TEventID FetchEventID(HardEvent evt) { return sim::PeekEvent(*state_.core, evt); }

private:
    sim::PipeState state_;
};

}  // namespace AscendC

inline AscendC::TPipe* GetTPipePtr() {
    return static_cast<AscendC::TPipe*>(sim::This().pipe);
}

#endif  // ASCENDC_PIPE_H
