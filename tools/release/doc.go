// Command release builds what people install: programs, packages, images and lists of a version, into one folder.
//
//	go run -C tools/release . [-targets linux/amd64,...] [-rootfs amd64=DIR] [-out ../../dist]
//	go run -C tools/release . keygen DIR
//	go run -C tools/release . verify -key FILE [DIR]
//	go run -C tools/release . proxy -out DIR TAG
//
// The version is the top entry of CHANGELOG.md, the time is that of the commit. It asks no network: the modules must be
// in the module cache (`go mod download`). The same commit, Go and module versions give the same bytes on each machine,
// except for an image that is made of files of the host (-rootfs ARCH=host).
//
// The layers, each file calling only those behind it: main, release, then linux, npm, brew, image, then man, sbom,
// notices, sign, proxy, hostfiles, then program, changelog, archive.
package main
