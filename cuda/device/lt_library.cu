// Where cuBLASLt is.
#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "lt.h"

namespace cuda {

namespace {

constexpr const char* names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};

// Folders before those of the system's own search: of the toolkit, then of the Python wheels of the toolkit
// in folder .cuda beside the program's, which `make cuda` fills.
std::vector<std::string> folders() {
  std::vector<std::string> all;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = getenv(variable)) all.push_back(std::string(home) + "/lib64/");
  }
  all.push_back("/usr/local/cuda/lib64/");
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length <= 0) return all;
  const std::string path(program, size_t(length));
  const std::string pattern =
      path.substr(0, path.rfind('/')) + "/../.cuda/lib/python*/site-packages/nvidia/cu13/lib/";
  glob_t found;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; i++) all.push_back(found.gl_pathv[i]);
    globfree(&found);
  }
  return all;
}

// Null if there is none. A name without a folder is looked for as LD_LIBRARY_PATH and ldconfig say.
void* open() {
  std::vector<std::string> places = folders();
  places.push_back("");
  for (const char* name : names) {
    for (const std::string& folder : places) {
      if (void* library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    }
  }
  return nullptr;
}

}  // namespace

void* ltFunction(const char* name) {
  static void* const library = open();
  return library ? dlsym(library, name) : nullptr;
}

}  // namespace cuda
