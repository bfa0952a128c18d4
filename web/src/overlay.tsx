/**
 * What lies above the page: dialogs that ask, and toasts that tell.
 *
 * One dialog at a time, as the native <dialog>: it keeps the focus inside, closes on Escape and gives the
 * focus back. A toast goes after a while, except one that tells of a failure: that stays until it is closed.
 */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

const current = signal<(() => ComponentChildren) | null>(null);

export function openDialog(render: () => ComponentChildren): void {
  current.value = render;
}

export function closeDialog(): void {
  current.value = null;
}

export function isDialogOpen(): boolean {
  return current.value !== null;
}

export function DialogHost() {
  return <>{current.value?.()}</>;
}

export function Dialog(props: {
  readonly title: string;
  readonly class?: string;
  readonly hideTitle?: boolean;
  readonly children: ComponentChildren;
  readonly footer?: ComponentChildren;
  readonly onSubmit?: () => void;
}) {
  const element = useRef<HTMLDialogElement>(null);
  // Before the next key can come: who types at once after opening it loses nothing.
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const dialog = element.current!;
    dialog.showModal();
    return () => {
      dialog.close();
      before?.focus?.();
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it, the click is for the backdrop
    <dialog
      ref={element}
      class={props.class ?? ''}
      aria-label={props.title}
      onCancel={closeDialog}
      onClick={(event) => event.target === element.current && closeDialog()}
    >
      {props.hideTitle ? null : <div class="title">{props.title}</div>}
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          props.onSubmit?.();
        }}
      >
        {props.children}
        {props.footer ? <footer>{props.footer}</footer> : null}
      </form>
    </dialog>
  );
}

interface Toast {
  readonly id: number;
  readonly kind: 'good' | 'bad';
  readonly text: string;
}

const toasts = signal<readonly Toast[]>([]);
const toastsMax = 5;
const toastMs = 5_000;
let lastToast = 0;

export function tell(text: string): void {
  const toast = push('good', text);
  setTimeout(() => dismiss(toast.id), toastMs);
}

export function tellError(error: unknown): void {
  push('bad', error instanceof Error ? error.message : String(error));
}

function push(kind: Toast['kind'], text: string): Toast {
  lastToast += 1;
  const toast = { id: lastToast, kind, text };
  toasts.value = [...toasts.value, toast].slice(-toastsMax);
  return toast;
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.id} class={`toast ${toast.kind}`}>
          <span class="grow">{toast.text}</span>
          <button
            type="button"
            class="button small plain"
            aria-label="Dismiss"
            onClick={() => dismiss(toast.id)}
          >
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
