package scale

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
)

// Costs are what acts of a group of servers cost, in microseconds where the name has no other unit. `go run ./bench -parts g
// -costs FILE` measures and writes them.
type Costs struct {
	// Time of the database's processor.
	Commit         float64 `json:"commit"`          // of 5 KB, alone
	CommitTogether float64 `json:"commit_together"` // of 1,000 tasks at once, each
	Renewal        float64 `json:"renewal"`         // of one lease, with others in one statement
	Scan           float64 `json:"scan"`            // for lost leases, when none is held
	ScanLease      float64 `json:"scan_lease"`      // for each lease that is held
	OwnedLease     float64 `json:"owned_lease"`     // of the list of what is held, for each lease
	Take           float64 `json:"take"`            // of a lease that ran out, with its first commit
	Refused        float64 `json:"refused"`         // of a lease that somebody else has
	Notify         float64 `json:"notify"`          // of one notification
	NotifyListener float64 `json:"notify_listener"` // for each server that listens
	PollJournal    float64 `json:"poll_journal"`    // of one followed journal in a poll
	Delivery       float64 `json:"delivery"`        // of one commit to one follower on another server
	FeedLine       float64 `json:"feed_line"`
	FeedRead       float64 `json:"feed_read"`
	ListTask       float64 `json:"list_task"`   // of a list, for each stored task
	SearchTask     float64 `json:"search_task"` // of a search, for each indexed task

	// Time of a server's processor.
	NotifyServer   float64 `json:"notify_server"`   // for each notification that comes
	DeliveryServer float64 `json:"delivery_server"` // for each commit that a follower gets

	// Time that passes.
	CommitWait float64 `json:"commit_wait"` // of a commit of one task, median
	FeedWait   float64 `json:"feed_wait"`   // of a line of the feed while many servers write: each waits for the one before

	StatementWait float64 `json:"statement_wait"` // of a statement that reads little, median
	NotifyWait    float64 `json:"notify_wait"`    // from the statement that notifies to the server that listens, median

	// Bytes.
	CommitLine      float64 `json:"commit_line_bytes"` // a commit
	CommitHot       float64 `json:"commit_hot_bytes"`  // a commit in the tables, with its index
	CommitCold      float64 `json:"commit_cold_bytes"` // a commit in a compressed segment
	ConnectionBytes float64 `json:"connection_bytes"`  // memory of a connection in the database

	// What three real servers did: the simulation is compared with it.
	Delay    float64 `json:"measured_delay"` // of a commit to followers on three servers, median
	DelayP99 float64 `json:"measured_delay_p99"`
	TakeOver float64 `json:"measured_take_over"` // from the last sign of a server to the lease of its task, median
	TakeLast float64 `json:"measured_take_last"` // the latest
}

//go:embed costs.json
var measured []byte

// Measured are the costs that the repository keeps.
func Measured() (Costs, error) { return decode(measured) }

// Read reads the costs that the bench wrote.
func Read(file string) (Costs, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Costs{}, fmt.Errorf("read the costs: %w", err)
	}
	return decode(data)
}

// Write writes costs for Read.
func (c Costs) Write(file string) error {
	data, err := json.MarshalIndent(c, "", "\t")
	if err != nil {
		return fmt.Errorf("write the costs: %w", err)
	}
	return os.WriteFile(file, append(data, '\n'), 0o600)
}

func decode(data []byte) (c Costs, err error) {
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("read the costs: %w", err)
	}
	if c.Commit <= 0 || c.CommitWait <= 0 || c.ListTask <= 0 {
		return c, fmt.Errorf("the costs lack a commit or a list; write them with go run ./bench -parts g -costs FILE")
	}
	return c, nil
}
