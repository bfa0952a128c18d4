/**
 * Names that the reader marked, kept in this browser, for each context by itself. Storage may be forbidden:
 * then they last as long as the page.
 */
import { signal } from '@preact/signals';
import { context } from './router.ts';

const namesMax = 200;
const key = `drover-favourites-${context ?? ''}`;

function stored(): readonly string[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(key) ?? '[]');
    if (!Array.isArray(value)) return [];
    return value.filter((name): name is string => typeof name === 'string').slice(0, namesMax);
  } catch {
    return []; // no storage, or not what we wrote
  }
}

export const favourites = signal<readonly string[]>(stored());

export function toggleFavourite(name: string): void {
  const others = favourites.value.filter((one) => one !== name);
  favourites.value =
    others.length < favourites.value.length ? others : [...others, name].slice(-namesMax);
  try {
    localStorage.setItem(key, JSON.stringify(favourites.value));
  } catch {
    // as said above
  }
}
