// How fast this card is. Every line on standard output is one of a CSV file; what they mean is in run.sh.
//
//   bench copy                      bytes a second of copies within the card's memory
//   bench products BYTES_S          matrices of Qwen3-8B by both ways that there are
//   bench steps SHAPE MODE BYTES_S  steps of a model
//   bench pair SMALL LARGE WHERE    steps of two models, alone and side by side
//
// Shapes: tiny, 0.6b, 8b, 32b. MODE: graphs, eager, own (graphs without cuBLASLt). WHERE: whole (both on all of the
// card), parts (each on multiprocessors of its own). BYTES_S is what copy gave; the floor is the time that weights
// and KV take at that rate. Ends with ok on standard error.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "../../device/lt.h"
#include "../../kernels/random.h"
#include "../rig.h"

namespace {

using check::Opened;
using check::Rig;

double nowUs() {
  using namespace std::chrono;
  return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

double least(const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }

// A shape, and how much is measured of it.
struct Shape {
  tr_model_config config;
  int32_t context, repeats;
};

// Of the config.json of each model (Qwen3 technical report, arXiv 2505.09388).
Shape shapeOf(const std::string& name) {
  if (name == "0.6b") return {check::qwen3(28, 1024, 16, 8, 128, 3072, 151936, true), 1024, 40};
  if (name == "8b") return {check::qwen3(36, 4096, 32, 8, 128, 12288, 151936, false), 1024, 25};
  if (name == "32b") return {check::qwen3(64, 5120, 64, 8, 128, 25600, 151936, false), 1024, 15};
  CHECK(name == "tiny", "shape %s, want tiny, 0.6b, 8b or 32b", name.c_str());
  return {check::qwen3(2, 32, 2, 1, 16, 48, 96, false), 20, 1};
}

constexpr int32_t batchMax = 16;

void copy() {
  size_t free, total;
  CHECK_CUDA(cudaMemGetInfo(&free, &total));
  const int64_t bytes = std::min<int64_t>(int64_t(free) / 4, int64_t(4) << 30);
  check::Memory<char> from(bytes), to(bytes);
  std::vector<double> us;
  for (int i = 0; i < 8; i++) {
    const double began = nowUs();
    CHECK_CUDA(
        cudaMemcpyAsync(to.data(), from.data(), size_t(bytes), cudaMemcpyDeviceToDevice, check::stream()));
    CHECK_CUDA(cudaStreamSynchronize(check::stream()));
    us.push_back(nowUs() - began);
  }
  printf("copy_bytes_s\n%.4g\n", 2 * double(bytes) / least(us) * 1e6);
}

void random(uint16_t* to, int64_t count) {
  const cuda::Filled whole = {1, count, to, count, nullptr, 0, 1, 1, count, count};
  CHECK_CUDA(cuda::fillRandom({1, 0, 1e-6}, whole, check::stream()));
}

// The products of one layer, and the head, at numbers of rows on both sides of where the ways part.
void products(double bytesSecond) {
  check::Numbers n(1);
  cuda::Lt lt;
  check::Memory<char> workspace(std::max<int64_t>(cuda::ltWorkspaceBytes(), 1));
  if (cuda::ltVersion()) CHECK(lt.open(workspace.data(), nullptr) == TR_OK, "cuBLASLt does not open");
  printf("way,columns,depth,rows,us,over_floor\n");
  const int64_t sizes[][2] = {{6144, 4096}, {4096, 4096}, {24576, 4096}, {4096, 12288}, {151936, 4096}};
  for (const auto& size : sizes) {
    cuda::Matrix m = {nullptr, size[0], size[1]};
    check::Memory<uint16_t> w(m.elements()), x(256 * m.stride());
    check::Memory<float> y(256 * m.columns);
    random(w.data(), m.elements());
    random(x.data(), 256 * m.stride());
    m.weights = w.data();
    const cuda::Product p = {x.data(), m.stride(), m, y.data(), m.columns};
    for (int64_t rows : {1, 4, 8, 16, 17, 24, 32, 64, 256}) {
      for (const bool own : {true, false}) {
        if (!own && !cuda::ltVersion()) continue;
        std::vector<double> us;
        constexpr int calls = 20;
        for (int i = 0; i < 4; i++) {
          const double began = nowUs();
          for (int j = 0; j < calls; j++) {
            CHECK_CUDA(own ? cuda::multiplyFew(p, rows, check::stream())
                           : lt.multiply(p, rows, check::stream()));
          }
          CHECK_CUDA(cudaStreamSynchronize(check::stream()));
          us.push_back((nowUs() - began) / calls);
        }
        const double floorUs = double(m.elements()) * 2 / bytesSecond * 1e6;
        printf("%s,%lld,%lld,%lld,%.2f,%.3f\n", own ? "own" : "cublaslt", static_cast<long long>(m.columns),
               static_cast<long long>(m.depth), static_cast<long long>(rows), least(us), least(us) / floorUs);
      }
    }
  }
}

// Bytes that a step must read: all weights, but of the embedding only a few rows, and the KV of its requests.
double bytesOf(const Rig& r, const tr_model_config& c, int64_t kvTokens) {
  const double embedding = c.tied ? 0 : 2.0 * c.vocab * c.hidden;
  return double(r.took.weight_bytes) - embedding + double(r.took.kv_bytes_per_token) * double(kvTokens);
}

// Gives each of so many slots a context.
void fill(Rig& r, int32_t slots, int32_t context) {
  for (int32_t slot = 0; slot < slots; slot++) {
    for (int32_t start = 0; start < context; start += r.limits.rows_max) {
      r.begin();
      r.add(slot, start, std::min(r.limits.rows_max, context - start));
      r.must();
    }
  }
}

// A batch of requests with fresh tokens each, timed; microseconds of the caller and of the card.
void measure(Rig& r, const Shape& s, const std::string& mode, int32_t batch, int32_t fresh, double bytesSecond,
             const std::string& name) {
  std::vector<double> us, onCard;
  for (int32_t i = 0; i < s.repeats + 2; i++) {
    r.begin();
    for (int32_t slot = 0; slot < batch; slot++) r.add(slot, s.context, fresh);
    const double began = nowUs();
    r.must();
    if (i < 2) continue;  // a graph may be captured
    us.push_back(nowUs() - began);
    onCard.push_back(double(r.info.end_ns - r.info.start_ns) / 1e3);
  }
  const double floorUs = bytesOf(r, s.config, int64_t(batch) * (s.context + fresh)) / bytesSecond * 1e6;
  printf("%s,%s,%d,%d,%d,%d,%.1f,%.1f,%.1f,%.1f,%.3f\n", name.c_str(), mode.c_str(), r.info.graph, batch, fresh,
         s.context, median(us), least(us), median(onCard), floorUs, median(us) / floorUs);
}

void steps(const std::string& name, const std::string& mode, double bytesSecond) {
  const Shape s = shapeOf(name);
  const bool own = mode == "own";
  Opened d(own ? "graphs own" : mode.c_str());
  const double began = nowUs();
  Rig r(d.device(), s.config, check::limitsOf(batchMax, s.context + 64, std::min(256, 16 * s.context)));
  const tr_graphs g = r.graphs();
  fprintf(stderr, "%s, %s: loaded in %.1f s, %d graphs in %.2f s, %.1f MB\n", name.c_str(), mode.c_str(),
          (nowUs() - began) / 1e6, g.count, double(g.capture_ns) / 1e9, double(g.bytes) / 1e6);
  // Prompts by products of our own would take most of the time; what lies in the cache changes none of it.
  if (!own) fill(r, batchMax, s.context);
  printf("model,mode,graph,batch,fresh,context,median_us,least_us,card_us,floor_us,over_floor\n");
  for (int32_t batch : {1, 2, 4, 8, 16}) measure(r, s, mode, batch, 1, bytesSecond, name);
  for (int32_t fresh : {2, 4, 8, 16, 32}) measure(r, s, mode, 1, fresh, bytesSecond, name);
  for (int32_t batch : {2, 4, 8}) measure(r, s, mode, batch, 4, bytesSecond, name);
}

// Decode steps of a batch until told to stop, but some at least; their times.
std::vector<double> decode(Rig& r, const Shape& s, int32_t batch, int32_t some,
                           const std::atomic<bool>* stop) {
  std::vector<double> us;
  while (int32_t(us.size()) < some || (stop && !*stop)) {
    r.begin();
    for (int32_t slot = 0; slot < batch; slot++) r.add(slot, s.context, 1);
    const double began = nowUs();
    r.must();
    us.push_back(nowUs() - began);
  }
  return us;
}

void pairOn(const Shape& small, const Shape& large, int32_t smallPart, int32_t largePart) {
  constexpr int32_t batch = 4;
  Opened first("graphs", smallPart), second("graphs", largePart);
  // On all of the card both are of one device, as a system has them: the small one's work goes first.
  tr_device* other = largePart ? second.device() : first.device();
  Rig a(first.device(), small.config, check::limitsOf(batch, small.context + 16, 256));
  Rig b(other, large.config, check::limitsOf(batch, large.context + 16, 256));
  fill(a, batch, small.context);
  fill(b, batch, large.context);
  const double smallAlone = median(decode(a, small, batch, 4 * small.repeats, nullptr));
  const double largeAlone = median(decode(b, large, batch, large.repeats, nullptr));
  std::atomic<bool> stop{false};
  std::vector<double> smallBeside;
  std::thread beside([&] { smallBeside = decode(a, small, batch, 1, &stop); });
  const double largeBeside = median(decode(b, large, batch, 2 * large.repeats, nullptr));
  stop = true;
  beside.join();
  printf("%d,%d,%d,%.1f,%.1f,%.3f,%.1f,%.1f,%.3f\n", smallPart, largePart, batch, smallAlone,
         median(smallBeside), median(smallBeside) / smallAlone, largeAlone, largeBeside,
         largeBeside / largeAlone);
}

void pair(const std::string& smallName, const std::string& largeName, bool parts) {
  const Shape small = shapeOf(smallName), large = shapeOf(largeName);
  tr_device_info info = {};
  info.size = int32_t(sizeof info);
  tr_error error;
  CHECK_TR(check::backend().device_info(0, &info, &error), error);
  printf("small_multiprocessors,large_multiprocessors,batch,small_alone_us,small_beside_us,small_ratio,"
         "large_alone_us,large_beside_us,large_ratio\n");
  const int32_t part = std::max(info.processors / 8 / 8 * 8, 2);
  if (parts)
    pairOn(small, large, part, std::max((info.processors - part) / 8 * 8, 2));
  else
    pairOn(small, large, 0, 0);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  setvbuf(stdout, nullptr, _IOLBF, 0);  // who is stopped has said what it knew
  if (what == "copy" && argc == 2)
    copy();
  else if (what == "products" && argc == 3)
    products(strtod(argv[2], nullptr));
  else if (what == "steps" && argc == 5)
    steps(argv[2], argv[3], strtod(argv[4], nullptr));
  else if (what == "pair" && argc == 5)
    pair(argv[2], argv[3], strcmp(argv[4], "parts") == 0);
  else {
    fprintf(stderr, "bench: want copy, products BYTES_S, steps SHAPE graphs|eager|own BYTES_S, or"
                    " pair SMALL LARGE whole|parts\n");
    return 2;
  }
  fprintf(stderr, "ok\n");
}
