// Tiles of AMX: 2 x 2 tiles of sums, of 16 rows by 16 columns, which each 16 dwords of K meet as
// two tiles of A and two of B. Compiled once per ISA; the contract is amx_tile_kernel.h.
//
// K is one sequence of dwords, whatever taps it lies in, cut every 16. Where these are neighbours,
// tiles are loaded from A itself, else from a copy. After the last dword of K the copy and one of
// the weights have zeros. So the sizes of K never change, and with them the tiles: configuring them
// anew would clear all sums.
#include "cc/core/gemm/tiles/amx_tile_kernel.h"

#if defined(BD_AMX)

#include "cc/core/gemm/tiles/low_precision_kernel.h"
#include "cc/simd/convert/tiles.h"

// What sums go to and few rows go to: kernels of other sets.
#if defined(BD_EMULATED)
#define BD_OF(isa) isa##_emulated
#else
#define BD_OF(isa) isa
#endif

namespace bd::BD_ISA {
namespace {

constexpr int kTileRows = 16, kTileDwords = 16, kDword = 4;
constexpr int kTileBytes = kTileDwords * kDword;
// Registers: four of sums, [half of the rows][block], then two of A and two of B.
enum { kSums, kA = 4, kB = 6 };

struct Bytes {
  using Sum = int32_t;
  // Fewer rows take longer to load than to multiply, and sums are the same ones. (Those of bfloat16
  // are not, and would depend on how rows are cut into tasks.)
  static constexpr int kFewRows = 4;

  static const void* Start(const TileArgs& a) { return a.start; }
  static void Finish(const TileEpilogue& e, const TileSums& sums, void* dst) {
    BD_OF(avx512_bf16)::kEpilogueKernels.of_ints(e, sums, dst);
  }
  template <int c, int a, int b>
  static BD_INLINE void Dot(TileRegisters& tiles) {
    tiles.DotBytes<c, a, b>();
  }
};

struct Bfloats {
  using Sum = float;
  static constexpr int kFewRows = 0;

  static const void* Start(const TileArgs& a) { return a.epilogue.bias; }
  static void Finish(const TileEpilogue& e, const TileSums& sums, void* dst) {
    BD_OF(avx512_bf16)::kEpilogueKernels.of_floats(e, sums, dst);
  }
  template <int c, int a, int b>
  static BD_INLINE void Dot(TileRegisters& tiles) {
    tiles.DotBfloat16<c, a, b>();
  }
};
struct BfloatSums : Bfloats {
  static const void* Start(const TileArgs&) { return nullptr; }
};

[[gnu::noinline]] TileConfig ConfigOf(int rows) {
  TileConfig config;
  const int first = rows < kTileRows ? rows : kTileRows;
  for (int half = 0; half < 2; ++half) {
    const int of_half = half == 0 ? first : rows - first;
    for (int tile : {kSums + 2 * half, kSums + 2 * half + 1, kA + half}) {
      if (of_half > 0) config.Set(tile, of_half, kTileBytes);
    }
    config.Set(kB + half, kTileDwords, kTileBytes);
  }
  return config;
}

int64_t DwordsOfK(const TileArgs& a) { return a.taps * a.tap_length + a.tail_taps * a.tail_length; }

// Neighbouring rows of A, 16 dwords of each at a time.
class Rows {
 public:
  Rows(const TileArgs& a, const char* src, int rows)
      : a_(a), src_(src), stride_(a.px_stride * a.unit), rows_(rows) {}

  // Where the next ones of the first row are, and those of others, *stride bytes apart.
  const char* Next(int64_t* stride) {
    if (Left() >= kTileDwords) {
      *stride = stride_;
      return Take(kTileDwords);
    }
    *stride = kTileBytes;
    return Join();
  }

 private:
  [[gnu::noinline]] const char* Join() {
    DwordPiece pieces[kTileDwords];
    int n = 0;
    for (int lane = 0; lane < kTileDwords && tap_ < a_.taps + a_.tail_taps;) {
      const int64_t left = Left(), room = kTileDwords - lane;
      const int count = static_cast<int>(left < room ? left : room);
      pieces[n++] = {Take(count), lane, count};
      lane += count;
    }
    for (int row = 0; row < rows_; ++row) {
      JoinDwords(pieces, n, row * stride_, joined_ + row * kTileDwords);
    }
    return reinterpret_cast<const char*>(joined_);
  }

  int64_t Left() const { return (tap_ < a_.taps ? a_.tap_length : a_.tail_length) - taken_; }

  const char* Take(int64_t dwords) {
    const char* const at = src_ + a_.tap_offsets[tap_] + taken_ * kDword;
    const bool ends = dwords == Left();
    taken_ = ends ? 0 : taken_ + dwords;
    tap_ += ends;
    return at;
  }

  const TileArgs& a_;
  const char* const src_;
  const int64_t stride_;
  const int rows_;
  int64_t tap_ = 0, taken_ = 0;  // dwords of the tap
  alignas(64) float joined_[kAmxRows * kTileDwords];
};

alignas(64) constexpr float kNothing[kMaxTileBlocks * kBlock] = {};

// `tail` are the weights of the dwords after the last whole 16.
template <typename Type, int kBlocks>
BD_INLINE void Multiply(const TileArgs& a, const char* src, int rows, const float* tail,
                        TileRegisters& tiles) {
  constexpr int64_t kStride = kBlocks * kTileBytes;
  const bool both = rows > kTileRows;
  const void* start = Type::Start(a);
  const auto* of_columns = static_cast<const float*>(start == nullptr ? kNothing : start);
  tiles.Load<kSums>(of_columns, 0);
  if (kBlocks == 2) tiles.Load<kSums + 1>(of_columns + kBlock, 0);
  if (both) {
    tiles.Load<kSums + 2>(of_columns, 0);
    if (kBlocks == 2) tiles.Load<kSums + 3>(of_columns + kBlock, 0);
  }
  Rows of_a(a, src, rows);
  const float* w = a.weights;
  for (int64_t left = DwordsOfK(a); left > 0; left -= kTileDwords) {
    int64_t stride;
    const char* const x = of_a.Next(&stride);
    if (left < kTileDwords) w = tail;
    tiles.Load<kB>(w, kStride);
    if (kBlocks == 2) tiles.Load<kB + 1>(w + kBlock, kStride);
    tiles.Load<kA>(x, stride);
    Type::template Dot<kSums, kA, kB>(tiles);
    if (kBlocks == 2) Type::template Dot<kSums + 1, kA, kB + 1>(tiles);
    if (both) {
      tiles.Load<kA + 1>(x + kTileRows * stride, stride);
      Type::template Dot<kSums + 2, kA + 1, kB>(tiles);
      if (kBlocks == 2) Type::template Dot<kSums + 3, kA + 1, kB + 1>(tiles);
    }
    w += kTileDwords * kBlocks * kBlock;
  }
}

// To [block][row][16].
template <int kBlocks, typename Sum>
BD_INLINE void StoreSums(int rows, Sum* to, int64_t block_stride, TileRegisters& tiles) {
  Sum* const half = to + kTileRows * kBlock;
  tiles.Store<kSums>(to, kTileBytes);
  if (kBlocks == 2) tiles.Store<kSums + 1>(to + block_stride, kTileBytes);
  if (rows <= kTileRows) return;
  tiles.Store<kSums + 2>(half, kTileBytes);
  if (kBlocks == 2) tiles.Store<kSums + 3>(half + block_stride, kTileBytes);
}

template <typename Type, int kBlocks>
void AmxTile(const TileArgs& all) {
  if (all.tiles <= Type::kFewRows) {
    TileArgs few = all;
    few.tiles = 1;
    few.prefetch_step *= all.tiles;
    return BD_OF(avx512_vnni)::kInt8TileKernels.tile[kBlocks - 1][all.tiles - 1](few);
  }
  constexpr bool kSumsAlone = __is_same(Type, BfloatSums);
  constexpr int kRowFloats = kBlocks * kBlock;
  TileArgs a = all;
  TileEpilogue& e = a.epilogue;
  const int64_t k = DwordsOfK(a), whole = k / kTileDwords * kTileDwords;
  alignas(64) float tail[kTileDwords * kRowFloats] = {};
  __builtin_memcpy(tail, a.weights + whole * kRowFloats,
                   static_cast<size_t>(k - whole) * kRowFloats * sizeof(float));
  alignas(64) typename Type::Sum sums[kAmxRows * kRowFloats];
  const char* src = reinterpret_cast<const char*>(a.src);
  char* dst = reinterpret_cast<char*>(a.dst);
  int rows = a.tiles < kAmxRows ? static_cast<int>(a.tiles) : kAmxRows;
  TileRegisters tiles(ConfigOf(rows));
  for (;;) {
    Multiply<Type, kBlocks>(a, src, rows, tail, tiles);
    if constexpr (kSumsAlone) {
      StoreSums<kBlocks>(rows, reinterpret_cast<float*>(dst), e.dst_block_stride, tiles);
      dst += rows * kTileBytes;
    } else {
      StoreSums<kBlocks>(rows, sums, rows * kBlock, tiles);
      Type::Finish(e, {sums, rows, kBlocks}, dst);
      dst += rows * e.dst_step * e.tensors.dst_bytes;
      e.Advance(rows);
    }
    src += rows * a.px_stride * a.unit;
    a.tiles -= rows;
    if (a.tiles == 0) return;
    if (a.tiles >= rows) continue;
    rows = static_cast<int>(a.tiles);
    tiles.Configure(ConfigOf(rows));
  }
}

}  // namespace

#define BD_BY_BLOCKS(Type) \
  { AmxTile<Type, 1>, AmxTile<Type, 2> }
constexpr AmxTileKernels kAmxTileKernels = {BD_BY_BLOCKS(Bytes), BD_BY_BLOCKS(Bfloats),
                                            BD_BY_BLOCKS(BfloatSums)};

#else

namespace bd::BD_ISA {

constexpr AmxTileKernels kAmxTileKernels = {};

#endif

}  // namespace bd::BD_ISA
