/** Every limit that the wire sets or that we set on it, each with its reason. */

/** `jute.maxbuffer` of Apache's client and server: a longer frame drops the link. */
export const frameBytesMax = 0xfffff;

/** Room that a frame needs around its paths and data: headers, lengths, versions, the Stat. */
export const frameOverheadBytes = 1024;

/** Watches are set again after a reconnect in requests of at most this much (ZOOKEEPER-706). */
export const setWatchesBytesMax = 128 * 1024;

/** The TTL stands in five bytes of the owner field. */
export const ttlMaxMs = 0xff_ffff_ffffn;

/** Ops in one multi that a recursive delete sends: far below the frame, large enough to be few. */
export const deleteBatchMax = 500;

/** A version that matches any. */
export const anyVersion = -1;

export const passwordBytes = 16;
