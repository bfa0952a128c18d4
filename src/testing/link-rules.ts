/**
 * What a link and its connections have between them: the ways bytes go, what may be done to a frame, and
 * what a connection asks its link before it passes anything.
 */

import type { Clock } from '../support/index.ts';

export const directions = ['toServer', 'toClient'] as const;
export type Direction = (typeof directions)[number];

export interface LinkFrame {
  readonly direction: Direction;
  /** Counts the link's connections, from 1. */
  readonly connection: number;
  /** Counts this connection's frames in this direction, from 0, which is the handshake. */
  readonly index: number;
  /** Without the length prefix, and the receiver's to keep. */
  readonly bytes: Buffer;
}

/**
 * `cut`: the frame is not delivered and the connection goes. `passThenCut`: it is, and then the
 * connection goes. `replace`: this body, under a length of its own, goes instead.
 */
export type Verdict = 'pass' | 'drop' | 'cut' | 'passThenCut' | { readonly replace: Uint8Array };

export type FrameHook = (frame: LinkFrame) => Verdict | undefined;

/** What a connection has to know of its link. */
export interface Rules {
  readonly clock: Clock;
  isBlocked(direction: Direction): boolean;
  delayMs(): number;
  chunkBytes(): number;
  hook(): FrameHook | undefined;
  allow(direction: Direction, bytes: number): { bytes: number; cut: boolean };
  framed(direction: Direction): void;
  wasCut(): void;
  gone(): void;
}
