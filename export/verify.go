package export

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrArchive means that an archive is damaged or not one of Roost.
var ErrArchive = errors.New("not a whole archive of tasks")

// maxManifest bounds the manifest, in bytes: the file is untrusted.
const maxManifest = 256 << 20

// ReadManifest reads the manifest of an archive. It checks nothing else.
func ReadManifest(r io.ReaderAt, size int64) (*zip.Reader, Manifest, error) {
	var m Manifest
	files, err := zip.NewReader(r, size)
	if err != nil {
		return nil, m, fmt.Errorf("%w: %v", ErrArchive, err)
	}
	in, err := files.Open(ManifestName)
	if err != nil {
		return nil, m, fmt.Errorf("%w: it has no %s", ErrArchive, ManifestName)
	}
	defer in.Close() //nolint:errcheck // opened for reading only
	if err := json.NewDecoder(io.LimitReader(in, maxManifest)).Decode(&m); err != nil {
		return nil, m, fmt.Errorf("%w: read %s: %v", ErrArchive, ManifestName, err)
	}
	if m.Format != ArchiveFormat || m.Version != 1 {
		return nil, m, fmt.Errorf("%w: format %q, version %d", ErrArchive, m.Format, m.Version)
	}
	return files, m, nil
}

// VerifyArchive reads every file of an archive and compares the archive with its manifest: the same files, sizes and
// checksums.
func VerifyArchive(ctx context.Context, r io.ReaderAt, size int64) (Manifest, error) {
	files, m, err := ReadManifest(r, size)
	if err != nil {
		return m, err
	}
	want := make(map[string]ArchivedFile, len(m.Files))
	for _, f := range m.Files {
		want[f.Path] = f
	}
	for _, f := range files.File {
		if f.Name == ManifestName {
			continue
		}
		expected, ok := want[f.Name]
		if !ok {
			return m, fmt.Errorf("%w: %s is in it and not in its list, or twice", ErrArchive, f.Name)
		}
		delete(want, f.Name)
		if err := same(ctx, f, expected); err != nil {
			return m, err
		}
	}
	for name := range want {
		return m, fmt.Errorf("%w: its list names %s, which it lacks", ErrArchive, name)
	}
	return m, nil
}

func same(ctx context.Context, f *zip.File, want ArchivedFile) error {
	in, err := f.Open()
	if err != nil {
		return fmt.Errorf("%w: open %s: %v", ErrArchive, f.Name, err)
	}
	defer in.Close()
	sum := sha256.New()
	read := &reading{r: io.LimitReader(in, want.Size+1), ctx: ctx}
	n, err := io.Copy(sum, read)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: read %s: %v", ErrArchive, f.Name, err)
	case n != want.Size || hex.EncodeToString(sum.Sum(nil)) != want.SHA256:
		return fmt.Errorf("%w: %s has other bytes than were put into it", ErrArchive, f.Name)
	}
	return nil
}
