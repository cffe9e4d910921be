package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/store/rootkey"
)

// ErrOtherGroup: the database belongs to a group of servers with another key. What its journals hold would count as a
// stranger's here, and the other way round.
var ErrOtherGroup = errors.New("the database belongs to servers with another key")

// JoinGroup opens the key of the group whose tasks are in a database, and makes both when no server has used the database
// before: then file must not exist, or hold the key of this new group.
func JoinGroup(ctx context.Context, db *database.DB, file string) (*rootkey.Ring, error) {
	var id, key string
	there, err := database.Found(db.QueryRow(ctx, `SELECT id::text, key FROM roost.groups`), &id, &key)
	if err != nil {
		return nil, fmt.Errorf("look for the group of the database: %w", err)
	}
	ring, err := rootkey.Group(file, !there)
	if err != nil {
		if there {
			err = fmt.Errorf("%w; copy the file from a server of the group", err)
		}
		return nil, err
	}
	ownID, ownKey := ring.GroupID()
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
