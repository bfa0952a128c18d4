/** What axe-core finds serious on the page as it stands: a sentence for each place. */
import axe from 'axe-core';
import type { Page } from 'playwright-core';

export async function faultsOf(tab: Page): Promise<string[]> {
  // By the debugger's own door: the page's policy lets no other script in, and must not.
  await tab.evaluate(axe.source);
  const violations = await tab.evaluate(async () => {
    const run = (globalThis as unknown as { axe: typeof axe }).axe;
    return (await run.run()).violations;
  });
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes
        .slice(0, 3)
        .map(
          ({ html, failureSummary }) =>
            `${id} ${html.slice(0, 140)} ${failureSummary?.split('\n')[1] ?? ''}`,
        ),
    );
}
