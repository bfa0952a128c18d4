export {
  type Direction,
  type FrameHook,
  Link,
  type LinkFrame,
  type LinkOptions,
  type LinkStats,
  type Target,
  type Verdict,
} from './link.ts';
export { MovableClock } from './movable-clock.ts';
export { type Heard, RawClient, type RawReply } from './raw-client.ts';
export {
  type Fixture,
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from './server.ts';
