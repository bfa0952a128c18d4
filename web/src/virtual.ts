/**
 * Draws only the rows that are on screen, of as many as there are: @tanstack/virtual-core behind a hook.
 * All rows have one height, so nothing is measured.
 */
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
} from '@tanstack/virtual-core';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

export interface VirtualRows {
  readonly totalPx: number;
  readonly rows: readonly { readonly index: number; readonly topPx: number }[];
  readonly scrollTo: (index: number) => void;
}

export function useVirtual(
  element: { readonly current: HTMLElement | null },
  count: number,
  rowPx: number,
): VirtualRows {
  const [, redraw] = useState(0);
  const virtualizer = useRef<Virtualizer<HTMLElement, HTMLElement> | null>(null);
  const options = {
    count,
    getScrollElement: () => element.current,
    estimateSize: () => rowPx,
    overscan: 12,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => redraw((value) => value + 1),
  };
  virtualizer.current ??= new Virtualizer<HTMLElement, HTMLElement>(options);
  virtualizer.current.setOptions(options);
  useLayoutEffect(() => virtualizer.current!._didMount(), []);
  useLayoutEffect(() => virtualizer.current!._willUpdate());
  return {
    totalPx: virtualizer.current.getTotalSize(),
    rows: virtualizer.current
      .getVirtualItems()
      .map(({ index, start }) => ({ index, topPx: start })),
    scrollTo: (index) => virtualizer.current!.scrollToIndex(index, { align: 'auto' }),
  };
}
