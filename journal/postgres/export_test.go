package postgres

// Renewal is the statement that renews leases.
var Renewal = renewal(skipLocked)
