package memory

// FindLimitIn is FindLimit with another environment and file system.
var FindLimitIn = findLimit
