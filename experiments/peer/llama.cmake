# Read at every project() while llama-cpp-python is built: leaves out what is not needed, and mends AMX.
if(PROJECT_NAME STREQUAL "llama.cpp")
  # Half of the build, for chat templates and the command line.
  set(LLAMA_BUILD_COMMON OFF)
  set(TILE_CONFIG "${CMAKE_CURRENT_LIST_DIR}/tile_config.h")
  cmake_language(DEFER CALL target_compile_options ggml-cpu PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${TILE_CONFIG}>")
endif()
