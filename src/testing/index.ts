export { Link, type LinkOptions, type LinkStats, type Target } from './link.ts';
export type { Direction, FrameHook, LinkFrame, Verdict } from './link-rules.ts';
export { MovableClock } from './movable-clock.ts';
export { type Heard, RawClient, type RawReply } from './raw-client.ts';
export {
  type Fixture,
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from './server.ts';
