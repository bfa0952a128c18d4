/**
 * Light, dark, or as the system has it. The style sheet does the work with light-dark(); this only sets
 * which of the two holds. Storage may be forbidden: then the choice lasts as long as the page.
 */
import { effect, signal } from '@preact/signals';

export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

const key = 'drover-theme';

function stored(): Theme {
  try {
    const value = localStorage.getItem(key);
    return (themes as readonly (string | null)[]).includes(value) ? (value as Theme) : 'system';
  } catch {
    return 'system';
  }
}

export const theme = signal<Theme>(stored());

/** Counts up whenever colours change, for what paints itself on a canvas. */
export const repaint = signal(0);

export function startTheme(): void {
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
    try {
      localStorage.setItem(key, theme.value);
    } catch {
      // A browser without storage: the choice lasts as long as the page, as said above.
    }
    repaint.value = repaint.peek() + 1;
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    repaint.value += 1;
  });
}

export function nextTheme(): void {
  theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length]!;
}

/** A colour of the style sheet as it is now. */
export function colour(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
