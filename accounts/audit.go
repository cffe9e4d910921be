package accounts

import (
	"context"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
)

// Note durably records that a caller is about to act, and returns the entry's number. It ignores the id, time and
// status in e.
func (a *Accounts) Note(ctx context.Context, e api.AuditEntry) (entry int64, err error) {
	err = a.db.QueryRow(ctx, `INSERT INTO roost.audit (account, token, act, task, address, request)
		VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`, e.Account, e.Token, e.Act, e.Task, e.Address, e.Request).Scan(&entry)
	return entry, api.Failed(err, "write the audit trail")
}

// Outcome records the status of the answer to an entry's act, and the task that the act made, if it made one.
func (a *Accounts) Outcome(ctx context.Context, entry int64, status int, task string) error {
	_, err := a.db.Exec(ctx, `INSERT INTO roost.audit_outcomes (entry, status, task) VALUES ($1, $2, $3)`, entry, status, task)
	return api.Failed(err, "write the audit trail")
}

// AuditFilter narrows the audit trail; zero members do not narrow it.
type AuditFilter struct {
	Account, Task string
	Before        int64 // only entries older than this one
	Limit         int
}

// Audit is the audit trail, the newest entry first. The filter may hold what is no text of a database: no entry has that.
func (a *Accounts) Audit(ctx context.Context, f AuditFilter) ([]api.AuditEntry, error) {
	scan := func(row database.Scanner) (e api.AuditEntry, err error) {
		var at time.Time
		err = row.Scan(&e.ID, &at, &e.Account, &e.Token, &e.Act, &e.Task, &e.Address, &e.Request, &e.Status)
		e.At = stamp(at)
		return e, err
	}
	return list(ctx, a, "read the audit trail", scan, `SELECT e.id, e.at, e.account, e.token, e.act, coalesce(nullif(o.task, ''), e.task), e.address, e.request, o.status
		FROM roost.audit e LEFT JOIN roost.audit_outcomes o ON o.entry = e.id WHERE ($1 = ''::bytea OR convert_to(e.account, 'UTF8') = $1)
		AND ($2 = ''::bytea OR $2 IN (convert_to(e.task, 'UTF8'), convert_to(o.task, 'UTF8'))) AND ($3::bigint = 0 OR e.id < $3) ORDER BY e.id DESC LIMIT $4`,
		[]byte(f.Account), []byte(f.Task), f.Before, f.Limit)
}
