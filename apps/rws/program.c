/* program.c - nothing: main is in librws-program.so (lib/levels/meson.build). */
