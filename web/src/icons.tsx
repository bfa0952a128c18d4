/** The rail's icons: strokes on a 16 by 16 ground, in the colour of the text beside them. */
import type { Page } from './router.ts';

const strokes: Readonly<Record<Page, string>> = {
  overview: 'M2 9a6 6 0 0 1 12 0M8 9l3-3M2 13h12',
  tree: 'M3 2v10a1 1 0 0 0 1 1h3M3 6h4M9 4.5h5v3H9zM9 11.5h5v3H9z',
  sessions: 'M8 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 14a5 5 0 0 1 10 0',
  watches:
    'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4z',
  recipes: 'M4.5 7V5a3.5 3.5 0 0 1 7 0v2M3 7h10v7H3zM8 10v1.5',
  kafka:
    'M5 8a2 2 0 1 1-4 0 2 2 0 0 1 4 0zM14 3.5a2 2 0 1 1-4 0 2 2 0 0 1 4 0zM14 12.5a2 2 0 1 1-4 0 2 2 0 0 1 4 0zM4.7 7l5.6-2.6M4.7 9l5.6 2.6',
  groups: 'M2 3h5v4H2zM9 3h5v4H9zM2 9h5v4H2zM9 9h5v4H9z',
  alignment: 'M2 4h6M2 8h9M2 12h4M12.5 1.5v13',
  metrics: 'M2 13.5h12M3 10l3-4 3 2 4-5',
  audit: 'M4 2h6l3 3v9H4zM6.5 8h4M6.5 11h4',
  shell: 'M2 3h12v10H2zM4.5 6l2 2-2 2M8.5 10h3',
};

export function Icon(props: { readonly name: Page }) {
  return (
    <svg
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.4"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={strokes[props.name]} />
    </svg>
  );
}
