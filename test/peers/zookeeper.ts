/**
 * Real Apache ZooKeeper servers for tests: finding them, starting one, starting an ensemble.
 *
 *   const { found, missing } = await findZooKeepers();
 *   await using server = await startApache(found[0]!);
 *   … server.address …
 */
export { fourLetterWord } from './four-letter-word.ts';
export { freePort } from './free-port.ts';
export { type Ensemble, type EnsembleServer, startEnsemble } from './zookeeper-ensemble.ts';
export {
  type FoundPeers,
  findZooKeepers,
  type MissingPeer,
  type ZooKeeperPeer,
} from './zookeeper-fetch.ts';
export { type ApacheOptions, type ApacheServer, startApache } from './zookeeper-server.ts';
