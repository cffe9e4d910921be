package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	modulepkg "golang.org/x/mod/module"
	modulezip "golang.org/x/mod/zip"
)

// proxy writes what the module proxy would serve for a tag of a clone: for go install without a network.
func proxy(ctx context.Context, src, tag, out string) error {
	src, err := filepath.Abs(src)
	if err != nil {
		return err
	}
	when, err := git(ctx, src, "log", "-1", "--format=%cI", "refs/tags/"+tag)
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(when))
	if err != nil {
		return fmt.Errorf("read the time of %s: %w", tag, err)
	}
	mod, err := git(ctx, src, "show", "refs/tags/"+tag+":go.mod")
	if err != nil {
		return err
	}
	m := modulepkg.Version{Path: module, Version: tag}
	if err := modulepkg.Check(m.Path, m.Version); err != nil {
		return err
	}
	var zip bytes.Buffer
	if err := modulezip.CreateFromVCS(&zip, m, src, tag, ""); err != nil {
		return fmt.Errorf("pack %s at %s: %w", module, tag, err)
	}
	info, err := json.Marshal(struct{ Version, Time string }{tag, at.UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	dir := filepath.Join(out, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"list": []byte(tag + "\n"), tag + ".info": info, tag + ".mod": []byte(mod), tag + ".zip": zip.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
