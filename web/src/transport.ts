/**
 * Requests to the console's own server, and nothing else: JSON in, JSON out.
 *
 * The token comes from the address that the console printed (#token=…) or from a field; it is handed in
 * once at /api/login, which answers with a cookie that no script can read, and is kept nowhere here.
 * Every failure is a `Refusal` with a code and a sentence, whether the server or the network said no.
 */
import type { ErrorView, SessionView } from '../../src/console/api.ts';
import { context } from './router.ts';

export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: string;
  readonly status: number;

  constructor(code: string, message: string, status: number) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** Sent with every change: shows that the page that asks is one that the server gave out. */
let changeToken: string | null = null;

/** Who we are to the console. Takes the token out of the address, so that it is in no history or bookmark. */
export async function enter(): Promise<SessionView> {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (token === null) return await whoAmI();
  history.replaceState(null, '', location.pathname + location.search);
  return await login(token);
}

export async function whoAmI(): Promise<SessionView> {
  return known(await get<SessionView>('/api/session'));
}

export async function login(token: string): Promise<SessionView> {
  await whoAmI();
  return known(await post<SessionView>('/api/login', { token }));
}

function known(view: SessionView): SessionView {
  changeToken = view.csrf;
  return view;
}

/** Every request says which context it is for; one that names another keeps it. */
export function inContext(path: string, name: string | null = context): string {
  if (/[?&]context=/.test(path) || (name === null && context === null)) return path;
  return `${path}${path.includes('?') ? '&' : '?'}context=${encodeURIComponent(name ?? '')}`;
}

async function send<T>(path: string, init: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(inContext(path), {
      ...init,
      credentials: 'same-origin',
      cache: 'no-store',
    });
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error;
    throw new Refusal('UNREACHABLE', 'The console does not answer. Is it still running?', 0);
  }
  const text = await response.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new Refusal(
      'BAD_ANSWER',
      `The console answered ${response.status} and no JSON.`,
      response.status,
    );
  }
  if (response.ok) return body as T;
  const error = (body as Partial<ErrorView>).error;
  throw new Refusal(
    error?.code ?? 'HTTP_ERROR',
    error?.message ?? `The console answered ${response.status}.`,
    response.status,
  );
}

export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return send<T>(path, signal ? { signal } : {});
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const attempt = () =>
    send<T>(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-drover-token': changeToken ?? '' },
      body: JSON.stringify(body),
    });
  try {
    return await attempt();
  } catch (error) {
    // The console was started anew and knows our token no more. Nothing was done: ask for a new one, once.
    if (!(error instanceof Refusal) || error.code !== 'BAD_TOKEN' || path === '/api/login')
      throw error;
    await whoAmI();
    return await attempt();
  }
}

/** /api/x?a=1, without the parameters that are not set. */
export function at(
  path: string,
  parameters: Readonly<Record<string, string | number | boolean | null | undefined>> = {},
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value));
  }
  const text = search.toString();
  return text === '' ? path : `${path}?${text}`;
}
