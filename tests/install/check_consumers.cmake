# Installs a build to a prefix, moves the prefix, builds the projects beside this file against it and runs them, all in
# the folder TMPDIR.
#   cmake -DBUILD=… -DDATA=<model folder> -DLIBDIR=… -DCXX=<compiler> -DGENERATOR=<CMake's> -P check_consumers.cmake
set(here ${CMAKE_CURRENT_LIST_DIR})
include(${here}/../support/run.cmake)
set(FOLDER $ENV{TMPDIR})
set(installed ${FOLDER}/installed)
set(prefix ${FOLDER}/moved)

set(ENV{CMAKE_GENERATOR} ${GENERATOR})  # the default, make, may not be installed

# NAME FILE…: runs a consumer, which must find the expected bits.
function(consume name)
  run(${ARGN} ${DATA}/rows.npy ${DATA}/expected_raw.npy)
  message("${name}: ${output}")
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${installed})
file(RENAME ${installed} ${prefix})
foreach(page man/man1/forestvm.1 man/man1/forestvm-run.1 bash-completion/completions/forestvm zsh/site-functions/_forestvm
    fish/vendor_completions.d/forestvm.fish)
  if(NOT EXISTS ${prefix}/share/${page})
    message(FATAL_ERROR "share/${page} is not installed")
  endif()
endforeach()
run(${prefix}/bin/forestvm compile ${DATA}/model.json -o ${FOLDER}/model.fvm)

run(${CMAKE_COMMAND} -S ${here}/c99 -B ${FOLDER}/c99 -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${FOLDER}/c99)
consume("C99, find_package" ${FOLDER}/c99/runtime_consumer ${FOLDER}/model.fvm)
consume("C99, find_package, static" ${FOLDER}/c99/runtime_static_consumer ${FOLDER}/model.fvm)

find_program(pkg_config pkg-config REQUIRED)
find_program(cc NAMES cc gcc clang REQUIRED)
file(MAKE_DIRECTORY ${FOLDER}/pkg_config)
# NAME INSTALLED OPTION…: builds a consumer with the options that pkg-config prints, and runs it.
function(consume_pkg_config name installed)
  set(ENV{PKG_CONFIG_PATH} ${installed}/${LIBDIR}/pkgconfig)
  run(${pkg_config} ${ARGN} --cflags --libs forestvm)
  separate_arguments(flags UNIX_COMMAND "${output}")
  run(${cc} -std=c99 -Wall -Wextra -Wpedantic -Werror ${here}/c99/main.c -o ${FOLDER}/pkg_config/consumer ${flags}
    -Wl,-rpath,${installed}/${LIBDIR})
  consume("C99, ${name}" ${FOLDER}/pkg_config/consumer ${FOLDER}/model.fvm)
endfunction()
consume_pkg_config("pkg-config" ${prefix})
consume_pkg_config("pkg-config --static" ${prefix} --static)
# Linkers prefer shared libraries if there are any; without them, the static ones must be all that is needed.
set(archives ${FOLDER}/archives)
file(COPY ${prefix}/ DESTINATION ${archives} PATTERN "*.so*" EXCLUDE)
consume_pkg_config("pkg-config --static, archives alone" ${archives} --static)

run(${CMAKE_COMMAND} -S ${here}/cpp20 -B ${FOLDER}/cpp20 -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_CXX_COMPILER=${CXX})
run(${CMAKE_COMMAND} --build ${FOLDER}/cpp20)
consume("C++20" ${FOLDER}/cpp20/consumer ${DATA}/model.json)
consume("C, static" ${FOLDER}/cpp20/static_consumer ${FOLDER}/model.fvm)
