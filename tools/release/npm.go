package main

import (
	_ "embed" // the launcher
	"strings"
)

// npmName is the package that people install. The name without a scope belongs to someone else.
const npmName = "@roost-dev/roost"

//go:embed npm/roost.js
var launcher []byte

// npmPlatform gives a target in the words of npm and Node.
func npmPlatform(t target) (os, cpu string) {
	os, cpu = t.OS, t.Arch
	if os == "windows" {
		os = "win32"
	}
	if cpu == "amd64" {
		cpu = "x64"
	}
	return os, cpu
}

// npmPackages are a package for each platform, and one with the launcher, which depends on all and gets only the one
// whose os and cpu are those of the machine.
func (r *release) npmPackages() ([]file, error) {
	var out []file
	platforms := map[string]string{}
	for _, t := range r.Targets {
		os, cpu := npmPlatform(t)
		name := npmName + "-" + os + "-" + cpu
		platforms[name] = r.Version
		notices, err := r.notices(t)
		if err != nil {
			return nil, err
		}
		packed, err := r.npmPackage(name, map[string]any{
			"description": "The program of " + npmName + " for " + os + " on " + cpu,
			"os":          []string{os}, "cpu": []string{cpu}, "preferUnplugged": true,
		}, program("bin/"+t.exe(), r.Programs[t]), plain("THIRD-PARTY-NOTICES.txt", notices))
		if err != nil {
			return nil, err
		}
		out = append(out, packed)
	}
	packed, err := r.npmPackage(npmName, map[string]any{
		"description": summary, "bin": map[string]string{"roost": "bin/roost.js"},
		"optionalDependencies": platforms, "engines": map[string]string{"node": ">=16"},
		"keywords": []string{"agent", "cli", "roo-code", "cline"},
	}, program("bin/roost.js", launcher))
	return append(out, packed), err
}

// npmPackage packs as `npm pack` does.
func (r *release) npmPackage(name string, about map[string]any, files ...file) (file, error) {
	about["name"], about["version"], about["license"], about["homepage"] = name, r.Version, "Apache-2.0", homepage
	about["repository"] = map[string]string{"type": "git", "url": "git+" + homepage + ".git"}
	files = append(files, plain("package.json", indented(about)))
	for _, f := range r.Docs {
		if f.Name != "CHANGELOG.md" {
			files = append(files, f)
		}
	}
	data, err := tarOf(under("package", files), r.Commit.Time)
	packed := strings.NewReplacer("@", "", "/", "-").Replace(name) + "-" + r.Version + ".tgz"
	return plain(packed, gzipped(data)), err
}
