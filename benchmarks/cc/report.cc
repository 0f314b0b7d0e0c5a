#include "benchmarks/cc/report.h"

#include <cstdio>

namespace bd::layers {
namespace {

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= ' ') quoted += c;
  }
  return quoted + '"';
}

double Gflops(double flops, double us) { return flops / us / 1e3; }

void PrintJson(const char* key, const Entry& e) {
  std::printf(
      ", \"%s\": {\"algorithm\": %s, \"min_us\": %.3f, \"median_us\": %.3f, \"calls\": %zu}", key,
      Quoted(e.algorithm).c_str(), e.timing.min(), e.timing.median(), e.timing.us.size());
}

// The format of the header, the rows and the total.
constexpr char kRow[] = "%-22s %-32s %3s  %-12s %9s %9s  %-22s %9s %9s  %5s %5s  %7s %5s  %7s\n";

template <typename... Args>
std::string Format(const char* format, Args... args) {
  char text[64];
  std::snprintf(text, sizeof(text), format, args...);
  return text;
}

}  // namespace

Report::Report(const RunInfo& info, bool json) : info_(info), json_(json) {
  if (json_) {
    std::printf(
        "{\"kind\": \"run\", \"shapes\": %s, \"cpu\": %s, \"threads\": %d, \"isa\": %s, "
        "\"algorithm\": %s, \"memory\": %s, \"onednn\": %s, \"fma_peak_gflops\": %.1f, "
        "\"read_gb_per_s\": %.1f}\n",
        Quoted(info.shapes).c_str(), Quoted(info.cpu).c_str(), info.threads,
        Quoted(info.isa).c_str(), Quoted(info.algorithm).c_str(), Quoted(info.memory).c_str(),
        Quoted(info.onednn_version).c_str(), info.fma_peak, info.read_bandwidth);
    std::fflush(stdout);
    return;
  }
  std::printf(
      "%s: %s, threads %d, %s, algorithm %s, memory %s, oneDNN %s\n"
      "multiply-add peak %.0f GFLOP/s, memory read at %.1f GB/s\n\n",
      info.shapes.c_str(), info.cpu.c_str(), info.threads, info.isa.c_str(), info.algorithm.c_str(),
      info.memory.c_str(), info.onednn_version.c_str(), info.fma_peak, info.read_bandwidth);
  std::printf(kRow, "layer", "shape", "x", "ours", "min us", "median", "oneDNN", "min us", "median",
              "min", "med.", "GFLOP/s", "peak", "differ");
  std::fflush(stdout);
}

void Report::Add(const LayerResult& r) {
  const Timing &ours = r.ours.timing, &onednn = r.onednn.timing;
  const double gflops = Gflops(r.shape.flops(), ours.min());
  const double peak = 100 * gflops / info_.fma_peak;
  ours_.min_us += r.shape.count * ours.min();
  ours_.median_us += r.shape.count * ours.median();
  onednn_.min_us += r.shape.count * onednn.min();
  onednn_.median_us += r.shape.count * onednn.median();
  flops_ += r.shape.count * r.shape.flops();
  convolutions_ += r.shape.count;
  if (json_) {
    std::printf(
        "{\"kind\": \"layer\", \"name\": %s, \"shape\": %s, \"count\": %lld, \"mflop\": %.3f",
        Quoted(r.shape.name).c_str(), Quoted(r.shape.ToString()).c_str(),
        static_cast<long long>(r.shape.count), r.shape.flops() / 1e6);
    PrintJson("ours", r.ours);
    PrintJson("onednn", r.onednn);
    std::printf(", \"gflops\": %.1f, \"percent_of_peak\": %.1f, \"difference\": %.3g}\n", gflops,
                peak, r.difference);
  } else {
    std::printf(
        kRow, r.shape.name.c_str(), r.shape.ToString().c_str(),
        Format("%lld", static_cast<long long>(r.shape.count)).c_str(), r.ours.algorithm.c_str(),
        Format("%.1f", ours.min()).c_str(), Format("%.1f", ours.median()).c_str(),
        r.onednn.algorithm.c_str(), Format("%.1f", onednn.min()).c_str(),
        Format("%.1f", onednn.median()).c_str(), Format("%.2f", ours.min() / onednn.min()).c_str(),
        Format("%.2f", ours.median() / onednn.median()).c_str(), Format("%.1f", gflops).c_str(),
        Format("%.0f%%", peak).c_str(), Format("%.0e", r.difference).c_str());
  }
  std::fflush(stdout);
}

void Report::End() {
  const double gflops = Gflops(flops_, ours_.min_us);
  const double peak = 100 * gflops / info_.fma_peak;
  if (json_) {
    std::printf(
        "{\"kind\": \"total\", \"count\": %lld, \"mflop\": %.3f, "
        "\"ours\": {\"min_us\": %.3f, \"median_us\": %.3f}, "
        "\"onednn\": {\"min_us\": %.3f, \"median_us\": %.3f}, "
        "\"gflops\": %.1f, \"percent_of_peak\": %.1f}\n",
        static_cast<long long>(convolutions_), flops_ / 1e6, ours_.min_us, ours_.median_us,
        onednn_.min_us, onednn_.median_us, gflops, peak);
  } else {
    std::printf(kRow, "total", "", Format("%lld", static_cast<long long>(convolutions_)).c_str(),
                "", Format("%.0f", ours_.min_us).c_str(), Format("%.0f", ours_.median_us).c_str(),
                "", Format("%.0f", onednn_.min_us).c_str(),
                Format("%.0f", onednn_.median_us).c_str(),
                Format("%.2f", ours_.min_us / onednn_.min_us).c_str(),
                Format("%.2f", ours_.median_us / onednn_.median_us).c_str(),
                Format("%.1f", gflops).c_str(), Format("%.0f%%", peak).c_str(), "");
    std::printf("\n");
  }
  std::fflush(stdout);
}

}  // namespace bd::layers
