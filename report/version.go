package report

import (
	"runtime"
	"runtime/debug"
)

// Version is what this program is.
type Version struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Date     string `json:"build_date"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// VersionOf is the version of this program: the one that was set when a release was built, else that of the build
// information.
func VersionOf(set string) Version {
	v := Version{Version: set, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v.Version == "" {
			v.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.time":
				v.Date = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	if v.Version == "" || v.Version == "(devel)" {
		v.Version = "dev"
	}
	return v
}
