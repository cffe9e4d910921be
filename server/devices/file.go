package devices

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/inputfile"
)

// linksMost bounds the unused log-in links of a server; one more replaces the oldest.
const linksMost = 8

// file keeps the devices of one server in a file, and its links in memory. It reads the file once.
type file struct {
	path  string
	token string
	now   func() time.Time

	loaded bool

	mu    sync.Mutex // guards links
	links []openLink // the unused ones, the oldest first
}

type openLink struct {
	key   string
	end   time.Time
	token string
}

// kept is the content of the file.
type kept struct {
	Token   string    `json:"token"` // a digest of the server's token, to which the devices belong
	Devices []*device `json:"devices"`
}

func (f *file) shared() bool { return false }

func (f *file) read(context.Context, bool) (list []*device, fresh bool, err error) {
	if f.loaded {
		return nil, false, nil
	}
	data, err := inputfile.Read(f.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, false, err
	}
	var k kept
	if err == nil && json.Unmarshal(data, &k) == nil && k.Token == hex.EncodeToString(tokenSum(f.token)) {
		list = slices.DeleteFunc(k.Devices, func(one *device) bool { return one == nil || one.ID == "" })
	}
	f.loaded = true
	return list, true, nil
}

func (f *file) write(_ context.Context, all map[string]*device, _ change) error {
	if !f.loaded {
		return nil // nothing has changed
	}
	k := kept{Token: hex.EncodeToString(tokenSum(f.token)), Devices: slices.AppendSeq([]*device{}, maps.Values(all))}
	slices.SortFunc(k.Devices, func(a, b *device) int { return strings.Compare(a.ID, b.ID) })
	data, err := json.MarshalIndent(k, "", " ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(f.path), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(f.path, append(data, '\n'))
	}
	return err
}

func (f *file) link(_ context.Context, key, token string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.links = append(f.links, openLink{key, f.now().Add(LinkLife), token}); len(f.links) > linksMost {
		f.links = f.links[1:]
	}
	return nil
}

func (f *file) use(_ context.Context, key string) (token string, good bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.links, func(l openLink) bool { return Same(key, l.key) })
	if i < 0 {
		return "", false, nil
	}
	one := f.links[i]
	f.links = slices.Delete(f.links, i, i+1)
	return one.token, f.now().Before(one.end), nil
}

// tokenSum returns a digest that marks devices as belonging to a token.
func tokenSum(token string) []byte {
	sum := sha256.Sum256([]byte("devices of " + token))
	return sum[:]
}
