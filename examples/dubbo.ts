/** A provider that Dubbo's Java consumers find, and a consumer that finds Java's providers. */

import { connect } from 'drover';
import { DubboRegistry } from 'drover/recipes';

const servers = process.env.ZK_SERVERS ?? '127.0.0.1:2181';
const [provider, consumer] = await Promise.all([connect(servers), connect(servers)]);
const [mine, theirs] = [new DubboRegistry(provider), new DubboRegistry(consumer)];
try {
  const service = 'org.example.Greeter';
  await mine.register(`dubbo://10.0.0.1:20880/${service}?interface=${service}&version=1.0`);
  await theirs.register(
    `consumer://10.0.0.2/${service}?interface=${service}&version=1.0&category=consumers`,
  );
  for (const { host, port } of await theirs.lookup(
    `consumer://10.0.0.2/${service}?interface=${service}&version=1.0`,
  )) {
    console.log(`${service} is served by ${host}:${port}`);
  }
  console.log('services:', await theirs.services());
} finally {
  await Promise.all([mine.close(), theirs.close()]);
  await Promise.all([provider.close(), consumer.close()]);
}
