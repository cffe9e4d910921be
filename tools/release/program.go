package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const module = "github.com/roost-dev/roost"

// target is a system and an architecture that programs are built for, in Go's words.
type target struct{ OS, Arch string }

func (t target) String() string { return t.OS + "/" + t.Arch }

// exe is the file name of the program.
func (t target) exe() string {
	if t.OS == "windows" {
		return "roost.exe"
	}
	return "roost"
}

var (
	allTargets = []target{
		{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
		{"windows", "amd64"}, {"windows", "arm64"},
	}
	host = target{runtime.GOOS, runtime.GOARCH}
)

// targetsOf reads a list such as linux/amd64,darwin/arm64.
func targetsOf(list string) ([]target, error) {
	if list == "all" {
		return allTargets, nil
	}
	var out []target
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(allTargets, func(t target) bool { return t.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("choose targets: %q is none of %v", name, allTargets)
		}
		out = append(out, allTargets[i])
	}
	return out, nil
}

// stampOf is what the program reads in api.stamp.
func stampOf(version string, c commit) string {
	stamp := version + " " + c.Hash + " " + c.Time.Format(time.RFC3339)
	if c.Modified {
		stamp += " modified"
	}
	return stamp
}

// build makes a stripped static program. Only the link depends on the stamp: the packages come from the build cache of
// any build with -trimpath and without cgo.
func build(ctx context.Context, src string, t target, stamp, out string) error {
	path, err := filepath.Abs(filepath.Join(out, t.exe()))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", path,
		"-ldflags", "-s -w -buildid= -X '"+module+"/api.stamp="+stamp+"'", "./cmd/roost")
	cmd.Dir = src
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.OS, "GOARCH="+t.Arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=", "GOWORK=off", "GOPROXY=off", "GOTOOLCHAIN=local")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	// It ends its compilers when it is asked to end.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second // then it is killed
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w", t, err)
	}
	return nil
}
