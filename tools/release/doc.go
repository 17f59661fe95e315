// Command release writes the image of a release for containers (OCI), of the program and the authorities of the web
// alone, for a user without rights. The rest of a release is made by .ci/release and GoReleaser, which makes images
// only with a daemon or a registry.
//
//	release -version 1.2.3 -date 2026-01-02T15:04:05Z -out image.tar amd64=dragoman
//
// What it writes depends on the programs, the version and the date alone.
package main
