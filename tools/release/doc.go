// Command release builds what users install: for each platform an archive with the program, its completions
// and manual pages, and a list of what is in it (CycloneDX); packages for Debian; an image for containers (OCI), of
// the program and the authorities of the web alone, for a user without rights; the Helm chart; and the
// checksums of all of them.
//
//	make release                                     # everything, in dist/release
//	make release RELEASE='-targets linux/amd64'      # for one platform
//
// It needs Go, git and bash. What it writes depends on the commit alone: two runs of the same commit with the
// same Go give the same bytes, in whatever directory. A release that fails leaves nothing.
package main
