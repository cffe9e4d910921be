package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

var versionEntry = regexp.MustCompile(`^## \[([^\]]+)\](?: - \d{4}-\d{2}-\d{2})?\s*$`)

// versionOf is the version of a changelog in the form of "Keep a Changelog": that of its top entry.
func versionOf(changelog string) (string, error) {
	for line := range strings.Lines(changelog) {
		if !strings.HasPrefix(line, "## ") {
			continue
		}
		m := versionEntry.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || !semver.IsValid("v"+m[1]) || semver.Canonical("v"+m[1]) != "v"+m[1] {
			return "", fmt.Errorf("read the version in CHANGELOG.md: the top entry is %q, not ## [X.Y.Z] - YYYY-MM-DD",
				strings.TrimSpace(line))
		}
		return m[1], nil
	}
	return "", errors.New("read the version in CHANGELOG.md: it has no entry: add ## [X.Y.Z] - YYYY-MM-DD")
}

// commit is what a release is built from.
type commit struct {
	Hash     string
	Time     time.Time // UTC; all that is built carries it
	Modified bool      // the tree holds more than the commit
}

func commitOf(ctx context.Context, src string) (commit, error) {
	out, err := git(ctx, src, "log", "-1", "--format=%H %cI")
	if err != nil {
		return commit{}, err
	}
	hash, when, _ := strings.Cut(strings.TrimSpace(out), " ")
	at, err := time.Parse(time.RFC3339, when)
	if err != nil {
		return commit{}, fmt.Errorf("read the time of commit %s: %w", hash, err)
	}
	status, err := git(ctx, src, "status", "--porcelain")
	return commit{Hash: hash, Time: at.UTC(), Modified: status != ""}, err
}

func git(ctx context.Context, src string, args ...string) (string, error) {
	abs, err := filepath.Abs(src)
	if err != nil {
		return "", err
	}
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", abs}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s in %s: %w: %s", args[0], abs, err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
