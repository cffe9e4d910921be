package roofmt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Sweep removes what dead processes of ours left in a task folder: temporary files, and Roo's locks, in whose way a live
// editor would lose its saves for half a minute. Replace does it first; after a crash it is worth doing at once. Nothing of
// other programs is touched. Failing to remove a file is not an error, failing to look is.
func Sweep(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("looking for leftovers: %w", err)
	}
	var records []string
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), ourPrefix+"lock_"); ok {
			records = append(records, name)
		}
		if m := ourTemp.FindStringSubmatch(e.Name()); m != nil && isLeft(e, m) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	if len(records) == 0 {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("looking for leftovers: %w", err)
	}
	// Another writer of ours may hold these locks; with the folder locked none does.
	if err := waitDir(ctx, d); err != nil {
		return errors.Join(err, d.Close())
	}
	for _, name := range records {
		file := filepath.Join(dir, name)
		l := &fileLock{dir: file + ".lock", record: ownerPath(file)}
		if info, err := os.Stat(l.dir); err == nil && l.ownDead(info.ModTime().UnixNano()) {
			_ = os.Remove(l.dir)
			_ = os.Remove(l.record)
		} else if orphanRecord(file) {
			_ = os.Remove(l.record)
		}
	}
	return errors.Join(unlockDir(d), d.Close())
}
