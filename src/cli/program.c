/* program.c - nothing: main is in librws-program.so (src/levels/meson.build). */
