import type { Client } from '../client/index.ts';

/**
 * Resolves once the work is done, or once there is no link, whichever is first; then the work goes on by
 * itself. So whoever gives up finds everything cleaned up, and does not wait for a server that is away.
 */
export function whileLinked(client: Client, work: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = () => {
      if (client.state.name !== 'connected') resolve();
    };
    client.on('state', look);
    look();
    work.then(resolve, reject).finally(() => client.off('state', look));
  });
}
