/** Releases of Apache ZooKeeper that nobody should begin with, and some still run: the last of each line. */
export const olderReleases = ['3.4.14', '3.5.10', '3.6.4', '3.7.2'] as const;
