/** The children of a node that need not be there: none is what a node has that is not there. */

import { type CallOptions, type Client, isZkError } from '../client/index.ts';

export async function childrenOrNone(
  client: Client,
  path: string,
  options: CallOptions,
): Promise<string[]> {
  try {
    return await client.children(path, options);
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return [];
    throw error;
  }
}
