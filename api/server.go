package api

import (
	"runtime"
	"runtime/debug"
)

// Server describes a running server.
type Server struct {
	PID       int    `json:"pid"`
	StartedAt string `json:"started_at"`
	URL       string `json:"url"` // "" = it is reached by a socket only
	Version   string `json:"version"`
	Draining  bool   `json:"draining"` // no new runs are started
	Stopping  bool   `json:"stopping"` // it ends when its runs have
	Recovery  string `json:"recovery"` // of what an earlier process left: none, going_on, done, failed
	Runs      Load   `json:"runs"`
	Streams   int    `json:"streams"` // that are followed
	Limits    Bounds `json:"limits"`
}

// Load counts the runs of a process.
type Load struct {
	Running int `json:"running"`
	Waiting int `json:"waiting"` // for a person
	Queued  int `json:"queued"`
}

// Bounds are how much a server does at a time.
type Bounds struct {
	MaxRuns      int    `json:"max_runs"`
	MaxStreams   int    `json:"max_streams"`
	MaxBody      int64  `json:"max_body"` // bytes of one request
	Hold         string `json:"hold"`     // how long a run waits for a user before it releases its task; 0s = until there is an answer
	DrainTimeout string `json:"drain_timeout"`
}

// Stop asks a server to end.
type Stop struct {
	Now bool `json:"now,omitempty"` // runs are not finished, but interrupted and saved
}

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
