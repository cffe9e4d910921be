package devices

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/roost-dev/roost/database"
)

// InDatabase returns the devices that log in to any of the servers of a database with a token. It reads nothing yet.
func InDatabase(db *database.DB, token string, now func() time.Time) *Devices {
	return open(&tables{db: db, token: tokenSum(token)}, token, now)
}

// tables keeps the devices and links of all servers with one token in their database. The clock of the database decides
// which log-ins have ended. The database has only digests of links and tokens.
type tables struct {
	db    *database.DB
	token []byte
	last  time.Time // of the last reading
}

func (t *tables) shared() bool { return true }

func (t *tables) read(ctx context.Context, atOnce bool) (list []*device, fresh bool, err error) {
	now := time.Now()
	if !atOnce && now.Sub(t.last) < readEvery {
		return nil, false, nil
	}
	rows := t.db.Query(ctx, `
SELECT id, name, address, first_seen, last_seen, until, account FROM roost.devices WHERE token = $1 AND until > clock_timestamp()`, t.token)
	list, err = database.Collect(rows, func(r database.Scanner) (*device, error) {
		var one device
		var first, last, until time.Time
		err := r.Scan(&one.ID, &one.Name, &one.Address, &first, &last, &until, &one.Token)
		one.First, one.Last, one.Until = first.UnixMilli(), last.UnixMilli(), until.UnixMilli()
		return &one, err
	})
	if err != nil {
		return nil, false, err
	}
	t.last = now
	return list, true, nil
}

func (t *tables) write(ctx context.Context, all map[string]*device, c change) error {
	var b database.Batch
	if one := c.in; one != nil {
		b.Queue(`
INSERT INTO roost.devices (token, id, name, address, until, account) VALUES ($1, $2, $3, $4, clock_timestamp() + make_interval(days => $5), $6)
ON CONFLICT (token, id) DO UPDATE SET until = EXCLUDED.until, account = EXCLUDED.account`, t.token, one.ID, one.Name, one.Address, cookieDays, one.Token)
	}
	if one := c.named; one != nil { // no insert: another server may have revoked it just now
		b.Queue(`UPDATE roost.devices SET name = $3 WHERE token = $1 AND id = $2`, t.token, one.ID, one.Name)
	}
	if len(c.removed) > 0 {
		b.Queue(`DELETE FROM roost.devices WHERE token = $1 AND id = ANY($2)`, t.token, c.removed)
	}
	for id, one := range all {
		if one.met {
			b.Queue(`UPDATE roost.devices SET address = $3, last_seen = greatest(last_seen, to_timestamp($4)) WHERE token = $1 AND id = $2`,
				t.token, id, one.Address, float64(one.Last)/1000)
		}
	}
	return database.Explained(t.db.SendBatch(ctx, &b))
}

func (t *tables) link(ctx context.Context, key, token string) error {
	sum := sha256.Sum256([]byte(key))
	var b database.Batch
	b.Queue(`DELETE FROM roost.login_links WHERE until <= clock_timestamp()`)
	b.Queue(`INSERT INTO roost.login_links (token, key, until, account) VALUES ($1, $2, clock_timestamp() + $3::interval, $4)`, t.token, sum[:], LinkLife, token)
	return database.Explained(t.db.SendBatch(ctx, &b))
}

func (t *tables) use(ctx context.Context, key string) (token string, good bool, err error) {
	sum := sha256.Sum256([]byte(key))
	_, err = database.Found(t.db.QueryRow(ctx, `
DELETE FROM roost.login_links WHERE token = $1 AND key = $2 RETURNING until > clock_timestamp(), account`, t.token, sum[:]), &good, &token)
	return token, good, database.Explained(err)
}
