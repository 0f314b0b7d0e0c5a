// Tiles of Winograd's convolution through the transforms of both axes; included by the per-ISA
// kernels only. The contract is winograd_kernel.h. A type of numbers has
//
//   kT                  the transform
//   Number, kStep       a register of a source, and how many channels of a block it holds
//   Load(p), Store(p, x), SourceAxis(d, t): t = B^T d
//   Sum, Element        a register of sums, and what it holds in memory: float or int32_t
//   LoadSum(p), AddSums(x, y), Start(a): what is added to the sums of a channel
//   DstAxis(m, y): y = A^T m, Result(y, i, j): that of row i and column j, after both axes
#pragma once

#include "cc/core/conv/winograd/winograd_kernel.h"
#include "cc/core/gemm/tiles/low_precision_registers_inl.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// One patch whose pixels are row_stride and 16 elements apart.
template <typename T, typename Src, typename Plane>
BD_INLINE void SourcePatch(const Src* src, int64_t row_stride, Plane* dst, int64_t plane_stride) {
  constexpr int kAlphaH = T::kT.alpha_h(), kAlphaW = T::kT.alpha_w();
  for (int v = 0; v < kBlock; v += T::kStep) {
    typename T::Number half[kAlphaH][kAlphaW];  // B^T d, rows transformed
    BD_UNROLL
    for (int j = 0; j < kAlphaW; ++j) {
      typename T::Number d[kAlphaH], t[kAlphaH];
      BD_UNROLL
      for (int i = 0; i < kAlphaH; ++i) d[i] = T::Load(src + i * row_stride + j * kBlock + v);
      T::SourceAxis(d, t);
      BD_UNROLL
      for (int i = 0; i < kAlphaH; ++i) half[i][j] = t[i];
    }
    BD_UNROLL
    for (int i = 0; i < kAlphaH; ++i) {
      typename T::Number t[kAlphaW];
      T::SourceAxis(half[i], t);
      BD_UNROLL
      for (int j = 0; j < kAlphaW; ++j) T::Store(dst + (i * kAlphaW + j) * plane_stride + v, t[j]);
    }
  }
}

// Calls patch(src, row_stride, t) for each patch t of kH x kW pixels, kMove apart: where it lies,
// or a copy if it reaches beyond src.
template <int kH, int kW, int kMove, typename Src, typename Patch>
BD_INLINE void ForPatches(const WinogradSourceArgs& a, Patch&& patch) {
  const Src* const plane = static_cast<const Src*>(a.src);
  alignas(64) Src copy[kH * kW * kBlock];
  for (int64_t t = 0; t < a.tiles; ++t) {
    const int64_t x = a.x + t * kMove;
    if (a.y >= 0 && x >= 0 && a.y + kH <= a.ih && x + kW <= a.iw) {
      patch(plane + (a.y * a.iw + x) * kBlock, a.iw * kBlock, t);
      continue;
    }
    for (int64_t i = 0; i < kH; ++i) {
      for (int64_t j = 0; j < kW; ++j) {
        const int64_t h = a.y + i, w = x + j;
        Src* const to = copy + (i * kW + j) * kBlock;
        if (h >= 0 && h < a.ih && w >= 0 && w < a.iw) {
          __builtin_memcpy(to, plane + (h * a.iw + w) * kBlock, kBlock * sizeof(Src));
        } else {
          __builtin_memset(to, a.zero, kBlock * sizeof(Src));
        }
      }
    }
    patch(copy, kW * kBlock, t);
  }
}

template <typename T, typename Src, typename Plane>
void Source(const WinogradSourceArgs& a) {
  const int64_t plane_stride = a.plane_stride * static_cast<int64_t>(sizeof(float) / sizeof(Plane));
  ForPatches<T::kT.alpha_h(), T::kT.alpha_w(), T::kT.mw, Src>(
      a, [&](const Src* src, int64_t row_stride, int64_t t) {
        SourcePatch<T>(src, row_stride, reinterpret_cast<Plane*>(a.dst) + t * kBlock, plane_stride);
      });
}

// Calls row(i, y) for each kPool rows of results of one vector of a tile, y being [kPool][mw].
template <typename T, int kPool, typename Row>
BD_INLINE void DstPatch(const typename T::Element* src, int64_t plane_stride, Row&& row) {
  constexpr int kMh = T::kT.mh, kMw = T::kT.mw;
  constexpr int kAlphaH = T::kT.alpha_h(), kAlphaW = T::kT.alpha_w();
  typename T::Sum half[kMh][kAlphaW];
  BD_UNROLL
  for (int j = 0; j < kAlphaW; ++j) {
    typename T::Sum m[kAlphaH], y[kMh];
    BD_UNROLL
    for (int i = 0; i < kAlphaH; ++i) m[i] = T::LoadSum(src + (i * kAlphaW + j) * plane_stride);
    T::DstAxis(m, y);
    BD_UNROLL
    for (int i = 0; i < kMh; ++i) half[i][j] = y[i];
  }
  BD_UNROLL
  for (int i = 0; i < kMh / kPool; ++i) {
    typename T::Sum y[kPool][kMw];
    BD_UNROLL
    for (int p = 0; p < kPool; ++p) {
      T::DstAxis(half[i * kPool + p], y[p]);
      BD_UNROLL
      for (int j = 0; j < kMw; ++j) y[p][j] = T::Result(y[p][j], i * kPool + p, j);
    }
    row(i, y);
  }
}

// Tiles of low precision that go through the epilogue together, which sets out once for their rows.
constexpr int kTogether = 8;

// Results by way of the stack: patch(src, v, to) makes vector v of a tile, whose rows are
// kTogether tiles apart, and finish(sums, px, pixel) stores `px` pixels of a row, from `pixel` on,
// of `together` tiles.
template <typename T, int kPool, typename Patch, typename Finish>
BD_INLINE void DstByRows(const WinogradDstArgs& a, int64_t together, Patch&& patch,
                         Finish&& finish) {
  constexpr int kH = T::kT.mh / kPool, kW = T::kT.mw / kPool;  // of a tile in dst
  constexpr int64_t kPitch = kTogether * kW * kBlock;
  alignas(64) typename T::Element sums[kH * kPitch];
  const auto* const src = reinterpret_cast<const typename T::Element*>(a.src);
  const int64_t rows = a.h - a.y < kH ? a.h - a.y : kH;
  for (int64_t first = 0; first < a.tiles; first += together) {
    const int64_t tiles = a.tiles - first < together ? a.tiles - first : together;
    for (int64_t t = 0; t < tiles; ++t) {
      for (int v = 0; v < kBlock; v += kLanes) {
        patch(src + (first + t) * kBlock + v, v, sums + t * kW * kBlock + v);
      }
    }
    const int64_t x = a.x + first * kW;
    const int64_t px = a.w - x < tiles * kW ? a.w - x : tiles * kW;
    for (int64_t i = 0; i < rows; ++i) finish(sums + i * kPitch, px, (a.y + i) * a.w + x);
  }
}

// `px` pixels of an output row, the first of them `pixel`, to any types.
template <typename Element>
void FinishRow(const WinogradDstArgs& a, Element* sums, int64_t px, int64_t pixel) {
  TileEpilogue e = a.epilogue;
  e.Advance(pixel);
  if constexpr (__is_same(Element, float)) {
    for (int64_t i = 0; e.bias != nullptr && i < px * kBlock; i += kLanes) {
      Store(sums + i, Add(Load(sums + i), Load(e.bias + i % kBlock)));
    }
  }
  FinishByRows<Element>(e, {sums, px, 1},
                        reinterpret_cast<char*>(a.dst) + pixel * e.dst_step * e.tensors.dst_bytes);
}

#if defined(BD_AVX512)

// `rows` rows of kPx pixels of a tile, the first of which is `pixel`.
template <typename T, int kPx>
[[gnu::noinline]] void FinishPatch(const WinogradDstArgs& a,
                                   const InRegisters<typename T::Element, 1>& finish,
                                   const typename T::Element* src, int64_t rows, int64_t pixel) {
  if constexpr (kPx <= T::kT.mw) {
    const typename T::Sum start = T::Start(a);
    DstPatch<T, 1>(src, a.plane_stride, [&](int i, const auto& y) {
      if (i >= rows) return;
      typename T::Sum sums[kPx][1];
      BD_UNROLL
      for (int p = 0; p < kPx; ++p) sums[p][0] = T::AddSums(y[0][p], start);
      finish.Finish(sums, pixel + i * a.w, reinterpret_cast<char*>(a.dst));
    });
  }
}

// Out of registers; false where the epilogue wants memory.
template <typename T>
bool StoreInRegisters(const WinogradDstArgs& a) {
  const InRegisters<typename T::Element, 1> finish(a.epilogue);
  if (!finish.applies()) return false;
  constexpr int64_t kMh = T::kT.mh, kMw = T::kT.mw;
  const int64_t rows = a.h - a.y < kMh ? a.h - a.y : kMh;
  const auto* src = reinterpret_cast<const typename T::Element*>(a.src);
  for (int64_t t = 0; t < a.tiles; ++t, src += kBlock) {
    const int64_t x = a.x + t * kMw, pixel = a.y * a.w + x;
    switch (a.w - x < kMw ? a.w - x : kMw) {
      case 1:
        FinishPatch<T, 1>(a, finish, src, rows, pixel);
        break;
      case 2:
        FinishPatch<T, 2>(a, finish, src, rows, pixel);
        break;
      case 3:
        FinishPatch<T, 3>(a, finish, src, rows, pixel);
        break;
      default:
        FinishPatch<T, 4>(a, finish, src, rows, pixel);
    }
  }
  return true;
}

#else

// Two vectors a block leave the sums of a tile no registers.
template <typename T>
bool StoreInRegisters(const WinogradDstArgs&) {
  return false;
}

#endif

}  // namespace
}  // namespace bd::BD_ISA
