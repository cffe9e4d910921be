package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
)

// restless is how long a file must have stood still before its stamp is believed:
// within a tick of the file system's clock a second write leaves no trace.
const restless = 50 * time.Millisecond

// derivedNames are files of ours that say nothing about a task that its journal does
// not say, or that change when it is only looked at.
var derivedNames = []string{"journal.idx", "journal.lock", "blobs"}

// stampOf is a digest of what the fingerprints of a task's files are: while it stays
// the same, so do its row and its messages. It is "" when that cannot be told. Not
// part of it is what the overlay says, which is put over a row when it is used.
func (s *Store) stampOf(ref Ref) (text string, calm bool) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %v\n", ref.Tool, ref.Dir, ref.Own)
	prints, err := roofmt.Prints(ref.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName, roofmt.MetadataName} {
		fmt.Fprintf(h, "%s %s\n", name, prints[name])
	}
	if !prints[roofmt.ItemName].Exists {
		fmt.Fprintf(h, "row %s\n", s.rows.row(ref.Dir))
	}
	newest, err := stampDir(h, ref.Dir)
	if err == nil && ref.Log != ref.Dir {
		var log time.Time
		log, err = stampDir(h, ref.Log)
		if log.After(newest) {
			newest = log
		}
	}
	if err != nil {
		return "", false
	}
	if exists(ref.Log, "journal.jsonl") {
		_, held := filelog.Holder(ref.Log)
		fmt.Fprintf(h, "held %v\n", held)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), time.Since(newest).Abs() > restless
}

// stampDir adds the entries of a folder, and gives the newest of their times. A folder
// that is not there has none.
func stampDir(h hash.Hash, dir string) (newest time.Time, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(h, "no %s\n", filepath.Base(dir))
		return newest, nil
	}
	if err != nil {
		return newest, err
	}
	for _, e := range entries {
		if slices.Contains(derivedNames, e.Name()) || strings.HasPrefix(e.Name(), markTemp) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return newest, err // it went just now
		}
		if !info.Mode().IsRegular() {
			fmt.Fprintf(h, "%q %s\n", e.Name(), info.Mode().Type())
			continue
		}
		fmt.Fprintf(h, "%q %d %d\n", e.Name(), info.Size(), info.ModTime().UnixNano())
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return newest, nil
}
