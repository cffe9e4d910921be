package api

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// A release has the version that it was linked with. Any other program has the one of its build information, or "dev".
func TestVersions(t *testing.T) {
	built := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	cloned := []debug.BuildSetting{{Key: "vcs.revision", Value: "c0ffee"}, {Key: "vcs.time", Value: "T"}, {Key: "vcs.modified", Value: "true"}}
	for _, c := range []struct {
		name, stamp string
		info        *debug.BuildInfo
		want        Version
	}{
		{"a release", "1.2.3 abc 2026-11-26T10:00:00Z", built("v9.9.9", cloned...), Version{Version: "1.2.3", Commit: "abc", Date: "2026-11-26T10:00:00Z"}},
		{"with more than the commit", "1.2.3 abc T modified", nil, Version{Version: "1.2.3", Commit: "abc", Date: "T", Modified: true}},
		{"go install", "", built("v1.2.3"), Version{Version: "1.2.3"}},
		{"go build in a clone", "", built("(devel)", cloned...), Version{Version: "dev", Commit: "c0ffee", Date: "T", Modified: true}},
		{"no information", "", nil, Version{Version: "dev"}},
		{"an empty number", "", built(""), Version{Version: "dev"}},
		{"half a stamp", "1.2.3", built("v2.0.0"), Version{Version: "2.0.0"}},
	} {
		c.want.Go, c.want.OS, c.want.Arch = runtime.Version(), runtime.GOOS, runtime.GOARCH
		if got := versionOf(c.stamp, c.info); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}
