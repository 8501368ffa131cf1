package memory

// FindLimitIn is FindLimit with a value of GOMEMLIMIT and a root file system.
var FindLimitIn = findLimit
