/**
 * What the page knows and how it stays true: one stream of events, and answers that are asked for again
 * when an event says that they may have changed.
 *
 * In: the events of /api/events. Out: signals for what every page shows (session, link, servers, zxid),
 * `onNodes` for what changed in the tree, and `useAnswer` for what one page shows.
 * What is shown is never silently old: while the stream is down, `staleSinceMs` says since when.
 * Lists are bounded: the last `changesMax` changes and `pointsMax` points are kept.
 */
import { batch, signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import type {
  ChangeView,
  FindingView,
  LinkView,
  LiveView,
  MetricPoint,
  ServerView,
  SessionView,
  StreamEvents,
  StreamKind,
} from '../../src/console/api.ts';
import { follow } from './sse.ts';
import type { ServerEvent } from './sse-parser.ts';
import { enter, get, inContext, Refusal, whoAmI } from './transport.ts';

const changesMax = 200;
const pointsMax = 400;

export const session = signal<SessionView | null>(null);
export const link = signal<LinkView | null>(null);
export const servers = signal<readonly ServerView[]>([]);
export const findings = signal<readonly FindingView[]>([]);
export const zxid = signal<string | null>(null);
export const changes = signal<readonly ChangeView[]>([]);
export const points = signal<readonly MetricPoint[]>([]);
export const staleSinceMs = signal<number | null>(null);
/** The console knows us no more, as after its start anew: it forgets who has logged in. */
export const wantsToken = signal(false);
/** Why the page shows nothing at all, if so. */
export const failure = signal<string | null>(null);
export const nowMs = signal(Date.now());

export const canWrite = () => session.value?.role === 'editor' && !session.value.readOnly;

export type Topic = LiveView | 'servers' | 'all';
const asked = new Set<(topic: Topic) => void>();
const watchers = new Set<(changes: readonly ChangeView[]) => void>();

/** Tells of every change of the tree, in order; after a gap with no changes at all: look again at everything. */
export function onNodes(listener: (changes: readonly ChangeView[] | null) => void): () => void {
  const onAll = (topic: Topic) => topic === 'all' && listener(null);
  watchers.add(listener);
  asked.add(onAll);
  return () => {
    watchers.delete(listener);
    asked.delete(onAll);
  };
}

/** Looks again at all that is shown: for servers whose changes no watch tells. */
export function lookAgain(): void {
  announce('all');
}

function announce(topic: Topic): void {
  for (const listener of [...asked]) listener(topic);
}

/** A place that was opened a moment ago knows only now whether changes come by themselves. */
const isKnownLive = () => session.value?.features.live !== false;

let run: string | null = null;
/** Something may have gone by unheard: a page that nobody saw from the start had no stream yet. */
let wasDown = document.hidden;

const handlers: { [K in StreamKind]: (data: StreamEvents[K]) => void } = {
  hello: (data) => {
    link.value = data.link;
    if (wasDown || (run !== null && run !== data.run)) announce('all');
    if ((run !== null && run !== data.run) || !isKnownLive()) void refreshSession();
    run = data.run;
    wasDown = false;
  },
  nodes: (data) => {
    changes.value = [...data.changes.toReversed(), ...changes.value].slice(0, changesMax);
    zxid.value = data.zxid;
    for (const listener of [...watchers]) listener(data.changes);
  },
  resync: () => {
    announce('all');
    if (!isKnownLive()) void refreshSession();
  },
  link: (data) => {
    link.value = data;
  },
  servers: (data) => {
    servers.value = data.servers;
    findings.value = data.findings;
    if (data.zxid !== null) zxid.value = data.zxid;
    announce('servers');
  },
  metrics: (data) => {
    points.value = [...points.value, data].slice(-pointsMax);
  },
  audit: () => announce('audit'),
  views: (data) => {
    for (const view of data.views) announce(view);
  },
  beat: () => {},
};

function take(event: ServerEvent): void {
  const handler = handlers[event.kind as StreamKind] as ((data: unknown) => void) | undefined;
  if (!handler) return; // A kind of a newer server: this page does not show it.
  const data: unknown = JSON.parse(event.data);
  batch(() => handler(data));
}

async function refreshSession(): Promise<void> {
  try {
    session.value = await whoAmI();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    failure.value = error.message;
  }
}

export async function startLive(): Promise<void> {
  setInterval(() => {
    nowMs.value = Date.now();
  }, 1000);
  // An address with a token that is opened over one without changes the fragment alone.
  addEventListener('hashchange', () => void arrive());
  await arrive();
}

async function arrive(): Promise<void> {
  try {
    session.value = await enter();
    link.value = session.value.link;
    failure.value = null;
  } catch (error) {
    failure.value = (error as Error).message;
    session.value = await whoAmI().catch(() => null); // why not is told already
  }
  if (session.value && session.value.role !== 'nobody') listen();
}

let following: AbortController | undefined;

/** From now on, and at once: one that waits for its next try is let go of. */
export function listen(): void {
  if (following !== undefined) wasDown = true;
  // What is shown was asked for after the session: whatever changed since then is told. Otherwise all is asked again.
  const fromId = wasDown ? null : (session.value?.lastEventId ?? null);
  following?.abort();
  following = new AbortController();
  wantsToken.value = false;
  void follow(
    inContext('/api/events'),
    {
      onEvent: take,
      onUp: () => {
        staleSinceMs.value = null;
        failure.value = null;
        wantsToken.value = false;
      },
      onDown: (error) => {
        wasDown = true;
        staleSinceMs.value ??= Date.now();
        wantsToken.value = error instanceof Refusal && error.status === 401;
      },
    },
    following.signal,
    fromId,
  );
}

export interface Answer<T> {
  readonly value: T | null;
  readonly error: Error | null;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

const coalesceMs = 150;

/**
 * The answer to a GET, kept true: asked again on `reload`, after a gap in the stream, when one of `topics`
 * is announced, or when a change of the tree is one that `concerns` it. The old answer stands until the
 * new one is there; never two requests at once.
 */
export function useAnswer<T>(
  path: string | null,
  topics: readonly Topic[] = [],
  concerns?: (change: ChangeView) => boolean,
): Answer<T> {
  const [state, setState] = useState<{
    path: string | null;
    value: T | null;
    error: Error | null;
    isLoading: boolean;
  }>({
    path,
    value: null,
    error: null,
    isLoading: path !== null,
  });
  const again = useRef<() => void>(() => {});
  const concern = useRef(concerns);
  concern.current = concerns;
  useEffect(() => {
    if (path === null) {
      setState({ path, value: null, error: null, isLoading: false });
      return;
    }
    const controller = new AbortController();
    let isBusy = false;
    let isAsked = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async () => {
      if (isBusy) {
        isAsked = true;
        return;
      }
      isBusy = true;
      try {
        const value = await get<T>(path, controller.signal);
        setState({ path, value, error: null, isLoading: false });
      } catch (error) {
        if (controller.signal.aborted) return;
        setState((old) => ({
          path,
          value: old.path === path ? old.value : null,
          error: error as Error,
          isLoading: false,
        }));
      } finally {
        isBusy = false;
      }
      if (isAsked) {
        isAsked = false;
        soon();
      }
    };
    const soon = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void load();
      }, coalesceMs);
    };
    const onTopic = (topic: Topic) => (topic === 'all' || topics.includes(topic)) && soon();
    const onChanges = (list: readonly ChangeView[]) => {
      if (concern.current && list.some(concern.current)) soon();
    };
    again.current = () => void load();
    setState((old) =>
      old.path === path ? old : { path, value: old.value, error: null, isLoading: true },
    );
    asked.add(onTopic);
    watchers.add(onChanges);
    void load();
    return () => {
      controller.abort();
      clearTimeout(timer);
      asked.delete(onTopic);
      watchers.delete(onChanges);
    };
  }, [path]);
  return { ...state, reload: () => again.current() };
}
