package rootkey

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/inputfile"
)

// Group reads the keys of a group of servers from a file, of which each server has a copy. With create it makes the file
// if there is none: the first server of a group does so. Without, the error wraps fs.ErrNotExist if there is none.
func Group(file string, create bool) (*Ring, error) {
	data, err := inputfile.Read(file)
	if errors.Is(err, fs.ErrNotExist) && create {
		if err := makeGroup(file); err != nil {
			return nil, fmt.Errorf("make the key of the group: %w", err)
		}
		data, err = inputfile.Read(file)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of the group: %w", err)
	}
	if info, err := os.Stat(file); err == nil && os.PathSeparator == '/' && exposed(info.Mode().Perm()) {
		return nil, fmt.Errorf("other users can read the key of the group in %s, its mode is %#o: make it 0600", file, info.Mode().Perm())
	}
	var p place
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("%s is no key of a group: %w", file, err)
	}
	if _, err := p.Sign.journal(); err != nil {
		return nil, fmt.Errorf("%s is no key of a group: %w", file, err)
	}
	if _, err := uuid.Parse(p.Root); err != nil {
		return nil, fmt.Errorf("%s is no key of a group: it has no id", file)
	}
	return &Ring{group: &p}, nil
}

// exposed reports whether other users can read a key whose file has this mode. It allows 0440: Kubernetes mounts a
// secret as root's, and readable for the group of the pod, and nobody sets that mode by accident.
func exposed(mode fs.FileMode) bool { return mode&0o077 != 0 && mode != 0o440 }

func makeGroup(file string) error {
	data, err := json.MarshalIndent(place{Root: uuid.NewString(), Sign: newKey()}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return writeOnce(file, append(data, '\n'))
}

// The uses of a token of the group.
const (
	ForServers = "the servers of a group"
	ForClients = "the clients of a group"
)

// Token returns a token of the group, the same on each server: it follows from the key.
func (r *Ring) Token(who string) (string, error) {
	key, err := r.group.Sign.journal()
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key.Secret)
	mac.Write([]byte("token of " + who + "\x00" + r.group.Root))
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// ErrOtherGroup: the database belongs to a group of servers with another key. Its journals would count as a
// stranger's here, and the journals of this group as a stranger's there.
var ErrOtherGroup = errors.New("the database belongs to servers with another key")

// Join opens the key of the group whose tasks are in a database, and makes both when no server has used the database
// before: then file must not exist, or hold the key of this new group.
func Join(ctx context.Context, db *database.DB, file string) (*Ring, error) {
	var id, key string
	there, err := database.Found(db.QueryRow(ctx, `SELECT id::text, key FROM roost.groups`), &id, &key)
	if err != nil {
		return nil, fmt.Errorf("look for the group of the database: %w", err)
	}
	ring, err := Group(file, !there)
	if err != nil {
		if there && errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w; copy the file from a server of the group", err)
		}
		return nil, err
	}
	ownID, ownKey := ring.group.Root, ring.group.Sign.ID
	if !there { // of two servers that begin a group at once, one does
		_, err := db.Exec(ctx, `INSERT INTO roost.groups (id, key) VALUES ($1, $2) ON CONFLICT DO NOTHING`, ownID, ownKey)
		if err == nil {
			err = db.QueryRow(ctx, `SELECT id::text, key FROM roost.groups`).Scan(&id, &key)
		}
		if err != nil {
			return nil, fmt.Errorf("begin the group of the database: %w", database.Explained(err))
		}
	}
	if id != ownID || key != ownKey {
		return nil, fmt.Errorf("%w: it has key %s, and %s holds key %s; copy the file from a server of the group", ErrOtherGroup, key, file, ownKey)
	}
	return ring, nil
}
