package database

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// Errors of opening a database.
var (
	// ErrNoSchema: the database has no tables of Roost, or tables of an older version. Migrate makes them.
	ErrNoSchema = errors.New("the database lacks the tables of this version; run the migration first")
	// ErrNewerSchema: a newer program has changed the tables. This program would misread them.
	ErrNewerSchema = errors.New("a newer program has changed the database; use that version, or a newer one")
	// ErrReadOnly: the address leads to a replica, or to a database that takes no writes.
	ErrReadOnly = errors.New("the database takes no writes; use the address of the primary")
	// ErrNotDurable: the database acknowledges commits that a crash can lose.
	ErrNotDurable = errors.New("the database acknowledges commits before they are synced")
	// ErrDenied: the database knows no such user, or the password is wrong or missing.
	ErrDenied = errors.New("the database refuses the user or the password")
	// ErrNotCreated: the server has no database of that name.
	ErrNotCreated = errors.New("there is no such database")
	// ErrNotAllowed: the user may not make or use the tables.
	ErrNotAllowed = errors.New("the user lacks a right in the database")
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations lead from no schema to the newest, in the order of their names. The schema's version is the number of
// migrations that have run. A released migration is never changed.
var migrations = func() (list []string) {
	entries, err := migrationFiles.ReadDir("migrations")
	for _, e := range entries {
		text, no := migrationFiles.ReadFile("migrations/" + e.Name())
		err, list = errors.Join(err, no), append(list, string(text))
	}
	if err != nil {
		panic(err) // they are inside the program
	}
	return list
}()

// migrationLock keeps two migrations from running at the same time. The number is arbitrary.
const migrationLock = 0x526f6f7374

// Migrate brings the tables of the database at url to the newest version, in one transaction: if it is interrupted,
// it has changed nothing. It does nothing if the tables have that version. Errors wrap ErrNewerSchema and
// ErrReadOnly.
func Migrate(ctx context.Context, url string) error {
	at, err := parse(url)
	if err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	c, err := connect(ctx, at.config, false) // what is prepared would stay behind a pooler
	if err != nil {
		return fmt.Errorf("migrate: connect to the database: %w", Explained(err))
	}
	defer c.Close(context.WithoutCancel(ctx)) //nolint:errcheck // its transaction has ended
	if err := migrate(ctx, c, len(migrations)); err != nil {
		return fmt.Errorf("migrate the database: %w", Explained(err))
	}
	return nil
}

func migrate(ctx context.Context, c *conn, to int) error {
	return c.transaction(ctx, func(tx *Tx) error {
		// The lock ends with the transaction: one of the session would be lost behind a pooler.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(migrationLock)); err != nil {
			return err
		}
		version, err := schemaVersion(ctx, c)
		if err != nil {
			return err
		}
		if version > len(migrations) {
			return fmt.Errorf("it has version %d of the tables, this program knows %d: %w", version, len(migrations), ErrNewerSchema)
		}
		if version >= to {
			return nil
		}
		if version == 0 {
			if _, err := tx.Exec(ctx, `
CREATE SCHEMA IF NOT EXISTS roost;
CREATE TABLE roost.schema_version (version bigint NOT NULL);
INSERT INTO roost.schema_version VALUES (0)`); err != nil {
				return err
			}
		}
		for ; version < to; version++ {
			if _, err := tx.Exec(ctx, migrations[version]); err != nil {
				return fmt.Errorf("from version %d to %d: %w", version, version+1, err)
			}
		}
		_, err = tx.Exec(ctx, `UPDATE roost.schema_version SET version = $1`, to)
		return err
	})
}

// schemaVersion returns the number of migrations that have run in the database; 0 without any.
func schemaVersion(ctx context.Context, c *conn) (version int, err error) {
	var there bool
	if err := c.queryRow(ctx, `SELECT to_regclass('roost.schema_version') IS NOT NULL`).Scan(&there); err != nil || !there {
		return 0, err
	}
	err = c.queryRow(ctx, `SELECT version FROM roost.schema_version`).Scan(&version)
	return version, err
}

// fit refuses a database that this program cannot use.
func fit(ctx context.Context, c *conn) error {
	var readOnly, unsynced, fsync string
	err := c.queryRow(ctx, `SELECT current_setting('transaction_read_only'), current_setting('synchronous_commit'), current_setting('fsync')`).
		Scan(&readOnly, &unsynced, &fsync)
	if err != nil {
		return err
	}
	switch {
	case readOnly == "on":
		return ErrReadOnly
	case fsync != "on":
		return fmt.Errorf("fsync is %s: %w", fsync, ErrNotDurable)
	case unsynced != "on" && unsynced != "remote_apply":
		return fmt.Errorf("synchronous_commit is %s, and must be on or remote_apply: %w", unsynced, ErrNotDurable)
	}
	version, err := schemaVersion(ctx, c)
	switch {
	case err != nil:
		return err
	case version < len(migrations):
		return fmt.Errorf("version %d of %d: %w", version, len(migrations), ErrNoSchema)
	case version > len(migrations):
		return fmt.Errorf("version %d, this program knows %d: %w", version, len(migrations), ErrNewerSchema)
	}
	return nil
}

// reasons maps the error codes of PostgreSQL to sentinels.
var reasons = map[string]error{
	"25006": ErrReadOnly,   // read_only_sql_transaction
	"28000": ErrDenied,     // invalid_authorization_specification
	"28P01": ErrDenied,     // invalid_password
	"3D000": ErrNotCreated, // invalid_catalog_name
	"42501": ErrNotAllowed, // insufficient_privilege
}

// Explained wraps an error of the database in the sentinel that callers know.
func Explained(err error) error {
	if refused, is := errors.AsType[*pgconn.PgError](err); is && reasons[refused.Code] != nil {
		return fmt.Errorf("%w (%s)", reasons[refused.Code], refused.Message)
	}
	if errors.Is(err, pgconn.ErrReadOnlyConnection) { // no host of the address takes writes
		return fmt.Errorf("%w (%w)", ErrReadOnly, err)
	}
	return err
}
